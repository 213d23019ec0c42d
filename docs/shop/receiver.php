<?php
// Prints each event once that a webhook brings, and refuses what the service did not send.
//
//     WEBHOOK_SECRET=whsec_... php -S 127.0.0.1:9000 docs/shop/receiver.php
$secret = getenv("WEBHOOK_SECRET");
$key = str_starts_with($secret, "whsec_") ? base64_decode(substr($secret, 6)) : $secret;
$header = fn($name) => $_SERVER["HTTP_" . strtoupper(strtr($name, "-", "_"))] ?? "";
[$body, $id, $at] = [file_get_contents("php://input"), $header("webhook-id"), $header("webhook-timestamp")];
$published = "sha256=" . hash_hmac("sha256", $body, $secret);
$standard = "v1," . base64_encode(hash_hmac("sha256", "$id.$at.$body", $key, true));
$sent = [$header("x-gateway-signature"), $header("x-gateway-signature-previous"), ...explode(" ", $header("webhook-signature"))];
$holds = fn($mine) => array_filter($sent, fn($one) => hash_equals($mine, $one)) !== [];
$genuine = $holds($published) && $holds($standard) && abs(time() - (int) $at) <= 300;
if ($genuine && !file_exists(__DIR__ . "/$id.handled")) {
    file_put_contents("php://stdout", json_decode($body, true)["event"] . " $id\n"); // what the event asks for
    touch(__DIR__ . "/$id.handled");
}
http_response_code($genuine ? 204 : 401);
