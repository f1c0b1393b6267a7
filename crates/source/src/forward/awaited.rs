//! Whether all commits of the source wait until their changes are applied here: this stream is one of the standbys that
//! the source's configuration names, and every one of them has to confirm.

use crate::error::Error;
use crate::login::stream_name;
use crate::pgoutput::literal;
use crate::wire::Connection;

use super::Asking;

/// Asks the source, where the server's definition says that commits are to wait.
pub(super) fn look_whether_awaited(asking: &Asking, connection: &mut Connection) -> Result<(), Error> {
    if asking.server.option("freshness") != Some("commit") {
        return Ok(());
    }
    // Before it is asked: what was true then holds from then on, as long as it is believed.
    let at = asking.engine.store().clock().now_ns() / 1_000;
    let name = stream_name(&asking.server);
    let rows = connection.query(&format!(
        "SELECT current_setting('synchronous_standby_names'),
             coalesce(bool_and(sync_state IN ('sync', 'quorum')), false)
         FROM pg_stat_replication WHERE application_name = {}",
        literal(name)
    ))?;
    let cell = |at: usize| rows.first().and_then(|row| row.get(at)?.as_deref());
    let is_confirming = cell(1) == Some("t");
    let are = is_confirming && cell(0).is_some_and(|names| all_confirm(names, name));
    asking.hub.set_awaited(at, are);
    Ok(())
}

/// Whether a value of `synchronous_standby_names` has commits wait for all standbys that it names, and for this one.
fn all_confirm(value: &str, own: &str) -> bool {
    let value = value.trim();
    let (count, list) = match value.split_once('(') {
        None => (Some(1), value),
        Some((how, list)) => {
            let number = how.split_whitespace().next_back().and_then(|word| word.parse::<usize>().ok());
            (number, list.trim_end().trim_end_matches(')'))
        }
    };
    let names: Vec<&str> = list.split(',').map(|name| name.trim().trim_matches('"')).collect();
    count == Some(names.len()) && names.contains(&own) && !names.contains(&"*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_standby_has_to_confirm() {
        for all in [
            "cache",
            "FIRST 1 (cache)",
            "ANY 2 (standby, \"cache\")",
            "2 (cache, standby)",
            " first 2 ( a, cache ) ",
        ] {
            assert!(all_confirm(all, "cache"), "{all}");
        }
        for some in [
            "",
            "*",
            "standby",
            "ANY 1 (standby, cache)",
            "FIRST 1 (standby, cache)",
            "cache, standby",
            "1 (*)",
            "x (cache)",
        ] {
            assert!(!all_confirm(some, "cache"), "{some}");
        }
    }
}
