"""The metric of answers with status 500, by stage: one line of the log, which CloudWatch makes a metric of, without a call.

A 500 is answered normally, so Lambda counts no error; and API Gateway's own 5XXError has the dimension ApiName, which Chalice makes
the same for every stage. On Lambda, JSON of this format on standard output is enough, and needs no right but to write logs. What
never comes to an answer (an import that fails, a timeout, no memory) is in Lambda's metric Errors.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import json
import os
import sys
import time

from chalicelib.settings import APP

METRIC = "api_errors"
DIMENSION = "stage"


def count(path: str, request_id: str) -> None:
    """Log that a request was answered with 500. `path` is the route's, without the values of its variable parts."""
    stage = os.environ.get("STAGE", "local")
    line = {
        "_aws": {
            "Timestamp": time.time_ns() // 1_000_000,
            "CloudWatchMetrics": [
                {
                    "Namespace": f"{APP}-{stage}",
                    "Dimensions": [[DIMENSION]],
                    "Metrics": [{"Name": METRIC, "Unit": "Count"}],
                }
            ],
        },
        DIMENSION: stage,
        METRIC: 1,
        "path": path,
        "request_id": request_id,
    }
    # Not by a logger, which Lambda lets write words before the JSON. One write, so that threads do not mix their lines.
    sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
    sys.stdout.flush()
