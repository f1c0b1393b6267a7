//! Whether a table here and one of the same name on another machine mean the same by a key and by a column's name.

use std::fmt::Write as _;

use rapidhash::v3::{DEFAULT_RAPID_SECRETS, rapidhash_v3_seeded};

use super::TableDef;

impl TableDef {
    /// A number that two tables have in common if a key of the one is a key of the other, and a condition on the
    /// columns of the one means the same for the other. What they allow, how long rows live, and who may do what are
    /// left out: these may differ between machines.
    pub fn likeness(&self) -> u64 {
        let mut text = format!("{}\n{}\n", self.name, self.answers_to_memcached());
        for (_, column) in self.visible_columns() {
            // An enum type has another number on each machine.
            let collation = match &column.enumeration {
                Some(own) => own.labels.join("\t"),
                None => column.collation.name().into_owned(),
            };
            let ty = column.sql_type().sql_name();
            let generated = column.generated.as_ref().map_or("", |generated| &generated.sql);
            let _infallible = writeln!(text, "{}\t{ty}\t{collation}\t{generated}", column.name);
        }
        // A cache that hears rows cannot do with one that tells invalidations.
        if self.replicates_rows() {
            text.push_str("rows\n");
        }
        for &column in &self.primary_key {
            let _infallible = writeln!(text, "{}", self.columns[column].name);
        }
        rapidhash_v3_seeded(text.as_bytes(), &DEFAULT_RAPID_SECRETS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::ColumnDef;

    fn table(columns: &[(&str, &str)], key: &[usize]) -> TableDef {
        let columns = columns.iter().map(|(name, ty)| ColumnDef::new(name, ty).unwrap()).collect();
        TableDef::new("page", columns, key.to_vec())
    }

    #[test]
    fn what_changes_the_meaning_of_a_key_or_a_column_makes_tables_differ() {
        let one = table(&[("id", "INT"), ("body", "TEXT")], &[0]);
        let mut richer = one.clone();
        richer.options.ttl_ms = Some(1_000);
        richer.id = 7;
        assert_eq!(one.likeness(), richer.likeness());
        for other in [
            table(&[("id", "BIGINT"), ("body", "TEXT")], &[0]),
            table(&[("id", "INT"), ("text", "TEXT")], &[0]),
            table(&[("id", "INT"), ("body", "TEXT")], &[0, 1]),
            table(&[("id", "INT"), ("body", "TEXT"), ("more", "TEXT")], &[0]),
        ] {
            assert_ne!(one.likeness(), other.likeness());
        }
        let mut renamed = one.clone();
        renamed.name = "other".into();
        assert_ne!(one.likeness(), renamed.likeness());
    }

    /// The number is compared with that of another machine, which another compiler may have built.
    #[test]
    fn the_number_is_the_same_everywhere() {
        assert_eq!(table(&[("id", "INT"), ("body", "TEXT")], &[0]).likeness(), 7_215_205_261_414_381_210);
    }
}
