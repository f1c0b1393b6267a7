//! Expiry rules and limits in the running daemon: they work by themselves, and outlive it.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::Client;
use crate::daemon::Daemon;

/// Long enough for a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_mins(1);

fn wait_for_rows(client: &mut Client, statement: &str, expected: &serde_json::Value) {
    let began = Instant::now();
    loop {
        let rows = json!(client.rows(statement));
        if rows == *expected {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{statement}: {rows}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn rules_run_by_themselves_and_outlive_a_death() {
    let mut daemon = Daemon::start(&[]);
    let mut client = daemon.connect();
    client.change(
        "CREATE TABLE page (id INT PRIMARY KEY, state TEXT) WITH (max_ops = 1000000, min_memory = '2 MB')",
    );
    client.change("CREATE INDEX page_state ON page (state)");
    client.change("CREATE EXPIRY RULE done ON page WHEN state = 'done' EVERY '100 ms'");
    client.change("INSERT INTO page VALUES (1, 'done'), (2, 'open')");
    let ids = "SELECT id FROM page ORDER BY id";
    wait_for_rows(&mut client, ids, &json!([{"id": 2}]));
    daemon.kill();
    daemon.restart();
    let mut client = daemon.connect();
    client.change("INSERT INTO page VALUES (3, 'done')");
    wait_for_rows(&mut client, ids, &json!([{"id": 2}]));
    let shown = client.rows("SHOW EXPIRY RULES");
    assert_eq!(shown[0]["condition"], json!("state = 'done'"), "{shown:?}");
    let limits =
        client.rows("SELECT rule, setting FROM sqlcached_limits WHERE table_name = 'page' ORDER BY rule");
    assert_eq!(limits[0], json!({"rule": "max_ops", "setting": "1000000"}), "{limits:?}");
    client.change("DROP EXPIRY RULE done");
    assert!(client.rows("SHOW EXPIRY RULES").is_empty());
}
