<?php
// A shop's day, from an order to a refund, with PHP 8 alone.
//
//     KEY=<client_test> php docs/shop/shop.php
//
// API and PORT, where webhooks arrive, come from the environment too. `php -S` runs this file once more, to receive them.
// The sandbox plays the customers: a shop leaves the functions below "Customers" out.
declare(strict_types=1);

const EVENTS = ["transaction.confirmed", "invoice.completed", "invoice.reverted", "refund.completed", "payout_link.completed"];
const COIN = ["network" => "ethereum", "coin" => "usdt"];
const PAYEE = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
define("API", getenv("API") ?: "http://127.0.0.1:8000/api/v1");
define("PORT", getenv("PORT") ?: "9000");

$orders = []; // by number: the invoice of each, what happened to it, and what it gives back
$handled = [];

PHP_SAPI === "cli-server" ? keep() : main();

class Refused extends Exception {} // the answer to a request that is not done: the same request again is refused again
class Later extends Exception {} // the same request, sent again after `getCode()` seconds, may be done

// One request. Throws Refused, Later.
function send(string $method, string $url, ?array $body = null, array $headers = []): array
{
    $options = ["method" => $method, "header" => ["Content-Type: application/json", ...$headers], "timeout" => 30, "ignore_errors" => true];
    $options += $body === null ? [] : ["content" => json_encode($body)];
    $stream = @fopen($url, "r", false, stream_context_create(["http" => $options]));
    if ($stream === false) {
        throw new Later("no answer from $url", 2);
    }
    $answered = stream_get_meta_data($stream)["wrapper_data"];
    $status = (int) explode(" ", $answered[0])[1];
    $text = stream_get_contents($stream);
    if ($status === 429 || $status >= 500) {
        $wait = current(preg_grep("/^retry-after:/i", $answered)) ?: "Retry-After: 1";
        throw new Later($text, (int) substr($wait, 12));
    }
    if ($status >= 400) {
        throw new Refused($text);
    }
    $found = json_decode($text, true);
    return $found["data"] ?? $found;
}

// A request of the shop's, sent again when its answer got lost: with its Idempotency-Key it is done once. `$once` names what must
// not be done again after a crash either: its answer is kept for 24 hours.
function call(string $method, string $path, ?array $body = null, ?string $once = null): array
{
    $headers = ["X-Api-Key: " . getenv("KEY"), "Idempotency-Key: " . ($once ?? bin2hex(random_bytes(16)))];
    for ($tries = 0; $tries < 2; $tries++) {
        try {
            return send($method, API . $path, $body, $headers);
        } catch (Later $later) {
            sleep($later->getCode());
        }
    }
    return send($method, API . $path, $body, $headers);
}

// Keeps each genuine event once, and answers at once. A shop keeps them in its database, under their unique id.
function keep(): void
{
    $header = fn($name) => $_SERVER["HTTP_WEBHOOK_$name"] ?? "";
    [$body, $id, $at] = [file_get_contents("php://input"), $header("ID"), $header("TIMESTAMP")];
    $mine = "v1," . base64_encode(hash_hmac("sha256", "$id.$at.$body", base64_decode(getenv("SECRET")), true));
    $signed = array_filter(explode(" ", $header("SIGNATURE")), fn($one) => hash_equals($mine, $one)) !== [];
    $genuine = $signed && abs(time() - (int) $at) <= 300;
    if ($genuine) {
        $file = getenv("FOLDER") . "/$id";
        file_put_contents("$file.new", $body);
        rename("$file.new", "$file.json");
    }
    http_response_code($genuine ? 204 : 401);
}

// The id of its invoice, whose page the customer is sent to. The same order again is the same invoice.
function order(string $number, string $price, array $more = []): string
{
    global $orders;
    $wanted = ["fiatAmount" => $price, "fiatCurrency" => "USD", "accept" => [COIN], "latePayments" => "manual", ...$more];
    $wanted += ["externalId" => $number, "metadata" => ["order" => $number]];
    $invoice = call("POST", "/invoices", $wanted, "order-$number");
    $orders[$number] = ["invoice" => $invoice["id"], "done" => []];
    echo "$number ordered: {$invoice['checkoutUrl']}\n";
    return $invoice["id"];
}

// Safe to do twice: what pays has an Idempotency-Key, and nothing is shipped twice.
function handle(string $event, array $data): void
{
    global $orders;
    if (in_array($event, ["transaction.confirmed", "refund.completed"])) {
        if ($data["invoiceId"] === null) {
            return;
        }
        $invoice = call("GET", "/invoices/{$data['invoiceId']}");
    } else {
        $invoice = $data; // or a payout link: it has the order's metadata, too
    }
    $number = $invoice["metadata"]["order"] ?? "";
    if (!isset($orders[$number])) {
        return;
    }
    match ($event) {
        "transaction.confirmed" => credited($number, $invoice, $data),
        "invoice.completed" => note($number, "shipped"),
        "invoice.reverted" => note($number, "stopped"),
        default => note($number, "paid back"),
    };
}

// Money came: what the order did not ask for goes back. What is refused is left to a person.
function credited(string $number, array $invoice, array $payment): void
{
    if (in_array("held", $payment["flags"])) {
        echo "$number look at this: a payment is held by the operator\n";
        return;
    }
    $once = "back-{$invoice['id']}-{$invoice['received']}"; // what is confirmed together goes back together
    // One transaction may bring a right coin and a wrong one.
    $came = [$payment["hash"], $payment["network"], $payment["coin"]];
    // Without an amount: what was overpaid, else all that is credited and not refunded.
    $refund = fn($reason) => call("POST", "/invoices/{$invoice['id']}/refunds", ["mode" => "same", "reason" => $reason], $once);
    try {
        if (in_array($came, array_map(fn($one) => [$one["txId"], $one["network"], $one["coin"]], $invoice["misdirected"] ?? []))) {
            $link = array_intersect_key($payment, array_flip(["network", "coin", "amount"]));
            $link += ["description" => "Order $number: not the coin we asked for", "metadata" => $invoice["metadata"]];
            give($number, call("POST", "/payout-links", $link, $payment["id"]));
        } elseif (in_array($invoice["status"], ["expired", "cancelled"])) {
            give($number, $refund("Paid too late"));
        } elseif (isset($invoice["overpaid"])) {
            give($number, $refund("Paid too much"));
        }
    } catch (Refused $words) {
        echo "$number look at this: {$words->getMessage()}\n";
    }
}

// Tell the customer: `claimUrl` is in this answer alone.
function give(string $number, array $back): void
{
    global $orders;
    $orders[$number]["back"] = $back;
    note($number, "gives back {$back['amount']} {$back['coin']}");
}

function note(string $number, string $what): void
{
    global $orders;
    if (!in_array($what, $orders[$number]["done"])) {
        $orders[$number]["done"][] = $what;
        echo "$number $what\n";
    }
}

function until(string $number, string $what): void
{
    global $orders, $handled;
    $deadline = time() + 60;
    while (!in_array($what, $orders[$number]["done"])) {
        $file = current(array_diff(glob(FOLDER . "/*.json"), $handled)); // their names sort by time
        if ($file !== false) {
            $handled[] = $file;
            $event = json_decode(file_get_contents($file), true);
            handle($event["event"], $event["data"]);
        } elseif (time() > $deadline) {
            throw new Exception("no event says: $number $what");
        } else {
            usleep(20_000);
        }
    }
}

// Customers, whom the sandbox plays.
function chooses(string $invoice): array
{
    return send("POST", API . "/pay/$invoice/choice", COIN);
}

function pays(array $choice, string $amount, string $coin = COIN["coin"]): void
{
    $network = $choice["network"];
    call("POST", "/sandbox/deposits", ["network" => $network, "coin" => $coin, "amount" => $amount, "address" => $choice["address"]]);
    call("POST", "/sandbox/blocks", ["network" => $network, "count" => 12]);
}

// Names an address, sees it again, and confirms it.
function claims(array $back): void
{
    $shown = send("POST", $back["claimUrl"], ["address" => PAYEE]);
    send("POST", $back["claimUrl"], ["address" => PAYEE, "confirm" => $shown["confirm"]]);
    gets((isset($back["invoiceId"]) ? "/refunds/" : "/payout-links/") . $back["id"]);
}

// Has the sandbox mine the payment now.
function gets(string $path): void
{
    call("POST", "/sandbox/withdrawals/" . call("GET", $path)["withdrawalId"], ["outcome" => "confirm"]);
}

function day(string $hook): void
{
    global $orders;
    $first = (int) (microtime(true) * 1000);
    [$exact, $over, $stray, $late] = ["$first-1", "$first-2", "$first-3", "$first-4"];

    $choice = chooses(order($exact, "49.90"));
    pays($choice, $choice["missing"]);
    until($exact, "shipped");
    while (!($sent = call("GET", "/webhooks/$hook/deliveries?event=invoice.completed&limit=1"))) {
        usleep(50_000); // a delivery is listed once its first attempt is over
    }
    call("POST", "/webhooks/deliveries/{$sent[0]['id']}/redeliver"); // comes again, and changes nothing

    $choice = chooses(order($over, "20"));
    pays($choice, "8"); // in two parts, and too much
    pays($choice, "17");
    until($over, "shipped");
    until($over, "gives back 5 usdt");

    pays(chooses(order($stray, "30")), "30", "usdc");
    until($stray, "gives back 30 usdc");

    $choice = chooses(order($late, "10", ["expiresIn" => 3600]));
    call("POST", "/sandbox/clock", ["advance" => 7200]);
    pays($choice, "10");
    until($late, "gives back 10 usdt");

    foreach ([$over, $stray, $late] as $number) {
        claims($orders[$number]["back"]);
        until($number, "paid back");
    }

    $refunds = "/invoices/{$orders[$exact]['invoice']}/refunds";
    try {
        call("POST", $refunds, ["mode" => "fiat", "amount" => "60", "address" => PAYEE], "too-much-$exact");
    } catch (Refused $words) {
        echo "$exact refused: " . json_decode($words->getMessage(), true)["error"] . "\n";
    }
    $back = call("POST", $refunds, ["mode" => "fiat", "amount" => "9.90", "address" => PAYEE], "refund-$exact");
    give($exact, $back);
    gets("/refunds/{$back['id']}");
    until($exact, "paid back");
}

function main(): void
{
    define("FOLDER", sys_get_temp_dir() . "/shop-" . getmypid());
    mkdir(FOLDER, 0700);
    $secret = base64_encode(random_bytes(32)); // signs the webhooks; a shop keeps it with its other secrets
    $nothing = ["file", "/dev/null", "w"];
    $environment = ["SECRET" => $secret, "FOLDER" => FOLDER] + getenv();
    $receiver = proc_open([PHP_BINARY, "-S", "127.0.0.1:" . PORT, __FILE__], [1 => $nothing, 2 => $nothing], $pipes, null, $environment);
    try {
        while (!@fsockopen("127.0.0.1", (int) PORT)) {
            usleep(20_000);
        }
        $url = "http://127.0.0.1:" . PORT . "/hook";
        $hook = call("POST", "/webhooks", ["url" => $url, "events" => EVENTS, "secret" => "whsec_$secret"])["id"];
        try {
            day($hook);
        } finally {
            call("DELETE", "/webhooks/$hook");
        }
    } finally {
        proc_terminate($receiver);
        array_map("unlink", glob(FOLDER . "/*"));
        rmdir(FOLDER);
    }
}
