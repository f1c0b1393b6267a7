//! Calls of SQLite's functions on columns and values: text, numbers, dates, JSON.

use super::World;
use super::values::text_of;

impl World {
    /// A call whose answer depends on nothing but its arguments.
    pub(crate) fn call(&mut self, scope: &[usize]) -> String {
        match self.rng.u32(0..4) {
            0 => self.call_of_text(scope),
            1 => self.call_of_number(scope),
            2 => self.call_of_json(scope),
            _ => self.call_of_any(scope),
        }
    }

    fn argument(&mut self, scope: &[usize]) -> String {
        if self.rng.u32(0..3) == 0 { self.listed_value() } else { self.plain_column_of(scope) }
    }

    /// An argument that is no float: `concat` writes these as PostgreSQL does.
    fn worded_argument(&mut self, scope: &[usize]) -> String {
        let argument = self.argument(scope);
        let floats = scope.iter().flat_map(|&at| {
            let table = &self.tables[at];
            let names = table.qualified();
            table.columns.iter().zip(names).filter(|(column, _)| column.kind == "REAL").map(|(_, name)| name)
        });
        let is_float = argument.parse::<f64>().is_ok() || floats.into_iter().any(|name| *name == argument);
        if is_float { "'17'".to_owned() } else { argument }
    }

    fn call_of_text(&mut self, scope: &[usize]) -> String {
        let (a, b) = (self.argument(scope), self.argument(scope));
        let (from, length) = (self.rng.i32(1..5), self.rng.i32(0..4));
        let (word, other) = (self.worded_argument(scope), self.worded_argument(scope));
        let calls = [
            format!("instr({a}, {b})"),
            format!("replace({a}, {b}, 'x')"),
            format!("trim({a})"),
            format!("ltrim({a}, {b})"),
            format!("rtrim({a}, 'ab1')"),
            format!("lower(quote({a}))"),
            format!("substr({a}, {from}, {length})"),
            format!("substr({a}, {from})"),
            format!("substring({a}, {from}, {length})"),
            format!("unicode({a})"),
            format!("char(65, {from} + 70)"),
            format!("quote({a})"),
            format!("octet_length({a})"),
            format!("concat({word}, {other}, 7)"),
            format!("concat_ws('-', {word}, {other})"),
            format!("printf('%s|%5s|%-4s|%Q', {a}, {b}, {a}, {b})"),
            format!("format('%d %05d %x', {a}, {b}, {from})"),
            format!("printf('%.2f %g', {a}, {b})"),
            format!("unhex({a})"),
            format!("hex(substr({a}, 1, 2)) || {other}"),
            format!("glob('a*', {a})"),
            format!("like('a%', {a})"),
        ];
        calls[self.rng.usize(0..calls.len())].clone()
    }

    fn call_of_number(&mut self, scope: &[usize]) -> String {
        let (a, b) = (self.argument(scope), self.argument(scope));
        let digits = self.rng.i32(-1..3);
        let calls = [
            format!("abs({a})"),
            format!("round({a})"),
            format!("round({a}, {digits})"),
            format!("sign({a})"),
            format!("max({a}, {b}, 3)"),
            format!("min({a}, {b})"),
            format!("({a} << {digits})"),
            format!("({a} >> 1)"),
            format!("~({a})"),
            format!("-({a})"),
            format!("({} * {})", self.number_of(scope, &a), self.number_of(scope, &b)),
            format!("({} / nullif({}, 0))", self.number_of(scope, &a), self.number_of(scope, &b)),
            format!("({} % nullif({}, 0))", self.whole_of(scope, &a), self.whole_of(scope, &b)),
            format!("(({a} > {b}) + ({b} >= {a}))"),
        ];
        calls[self.rng.usize(0..calls.len())].clone()
    }

    fn call_of_any(&mut self, scope: &[usize]) -> String {
        let (a, b) = (self.argument(scope), self.argument(scope));
        let condition = self.condition(scope, 0);
        let calls = [
            format!("ifnull({}, {})", text_of(&a), text_of(&b)),
            format!("coalesce(NULL, {}, {})", text_of(&a), text_of(&b)),
            format!("likely({a})"),
            format!("CASE {a} WHEN {b} THEN 'same' WHEN 1 THEN 'one' ELSE {b} END"),
            format!("CASE WHEN {condition} THEN {a} END"),
            format!("iif({condition}, {a}, {b})"),
            format!("date({a})"),
            format!("strftime('%Y-%j %H:%M', {a})"),
            format!("datetime({a}, '+1 day', 'start of month')"),
            format!("julianday({a})"),
            format!("datetime({a}, 'unixepoch')"),
            format!("(({condition}) + 0)"),
            format!("({a} IS {b}) + ({a} IS NOT {b})"),
            format!("({a} BETWEEN {b} AND {a}) + 0"),
            format!("({a} ISNULL) + ({b} NOTNULL)"),
            format!("({a} IS TRUE) + ({b} IS NOT FALSE)"),
            format!("quote({a} COLLATE NOCASE)"),
            format!("typeof({} + {})", self.number_of(scope, &a), self.number_of(scope, &b)),
            format!("typeof(-({a}))"),
        ];
        calls[self.rng.usize(0..calls.len())].clone()
    }

    /// JSON holds no bytes, so its values are columns that have none.
    fn call_of_json(&mut self, scope: &[usize]) -> String {
        let at = scope[self.rng.usize(0..scope.len())];
        let (a, b) = (self.wordy(at), self.wordy(at));
        let calls = [
            format!("json_array({a}, {b})"),
            format!("json_object('k', {a}, 'l', {b})"),
            format!("json_extract(json_array({a}, {b}), '$[1]')"),
            format!("json_array({a}, {b}) ->> '$[0]'"),
            format!("json_array({a}, {b}) -> 1"),
            format!("json_object('k', {a}) ->> '$.k'"),
            format!("json_object('k', json_array({a})) -> '$.k[0]'"),
            format!("json_type(json_array({a}), '$[0]')"),
            format!("json_quote({a})"),
            format!("json_set('{{\"a\": 1}}', '$.a', {a}, '$.b', {b})"),
            format!("json_insert('[1, 2]', '$[#]', {a})"),
            format!("json_replace('{{\"a\": 1}}', '$.a', {a})"),
            format!("json_remove(json_array({a}, {b}), '$[0]')"),
            format!("json_patch('{{\"a\": 1}}', json_object('b', {a}))"),
            format!("json_array_length(json_array({a}, {b}))"),
            format!("json_valid({a}) + 0"),
            format!("json(json_array({a}))"),
            format!("(SELECT group_concat(j.atom, '/') FROM json_each(json_array({a}, {b})) AS j)"),
            format!("(SELECT count(*) FROM json_tree(json_object('k', json_array({a}, {b}))))"),
        ];
        calls[self.rng.usize(0..calls.len())].clone()
    }

    /// A column of numbers or text.
    pub(crate) fn wordy(&mut self, at: usize) -> String {
        let table = &self.tables[at];
        let wordy = |column: &&super::Column| matches!(column.kind, "INT" | "REAL" | "TEXT");
        let names: Vec<String> = table
            .columns
            .iter()
            .filter(wordy)
            .map(|column| format!("{}.{}", table.name, column.name))
            .collect();
        self.rng.choice(&names).cloned().unwrap_or_else(|| "'none'".to_owned())
    }
}
