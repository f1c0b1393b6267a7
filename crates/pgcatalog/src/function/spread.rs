//! How far the numbers of a group lie apart: standard deviations and variances, as floats.

use std::rc::Rc;

use sqlite::{Aggregate, Arguments, Connection};
use sqltext::error::SqlError;
use store::definition::SqlType;
use store::value::Value;

use super::def::{Caller, FunctionDef, Returns, Source, real};

const fn own(
    name: &'static str,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
) -> FunctionDef {
    let returns = Returns::Type(SqlType::Float8);
    FunctionDef {
        name,
        arguments: "(x)",
        returns,
        types: &[],
        source: Source::Group,
        meaning,
        example,
        answer,
    }
}

/// The functions' lines.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    own("stddev", "the standard deviation of a sample, a float; also `stddev_samp`", "(SELECT stddev(value) FROM json_each('[1,3]'))", "1.4142135623730951"),
    own("stddev_pop", "the standard deviation of all there is, a float", "(SELECT stddev_pop(value) FROM json_each('[1,3]'))", "1.0"),
    own("stddev_samp", "as `stddev`", "(SELECT stddev_samp(value) FROM json_each('[1]')) IS NULL", "1"),
    own("var_pop", "the variance of all there is, a float", "(SELECT var_pop(value) FROM json_each('[1,3]'))", "1.0"),
    own("var_samp", "as `variance`", "(SELECT var_samp(value) FROM json_each('[1]')) IS NULL", "1"),
    own("variance", "the variance of a sample, a float; also `var_samp`", "(SELECT variance(value) FROM json_each('[1,3]'))", "2.0"),
];

/// What a group comes to.
#[derive(Clone, Copy, Debug)]
struct Of {
    /// The group is a sample of more.
    sample: bool,
    /// The root of the variance.
    root: bool,
}

impl Of {
    fn named(name: &str) -> Self {
        Self { sample: !name.ends_with("_pop"), root: name.starts_with("stddev") }
    }
}

/// A group under way, by Welford's method: no difference of large sums.
struct Spread<C> {
    of: Of,
    caller: Rc<C>,
    count: f64,
    mean: f64,
    /// The sum of the squared distances from the mean.
    squares: f64,
}

impl<C: Caller> Spread<C> {
    fn number(&self, arguments: &Arguments<'_>) -> Result<Option<f64>, String> {
        let value = arguments.value(0);
        if value.is_null() {
            return Ok(None);
        }
        real(&[value], 0).map(Some).map_err(|error| self.caller.fail(error))
    }
}

impl<C: Caller> Aggregate for Spread<C> {
    fn step(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        if let Some(number) = self.number(arguments)? {
            self.count += 1.0;
            let before = number - self.mean;
            self.mean += before / self.count;
            self.squares += before * (number - self.mean);
        }
        Ok(())
    }

    fn take_back(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        let Some(number) = self.number(arguments)? else { return Ok(()) };
        if self.count <= 1.0 {
            (self.count, self.mean, self.squares) = (0.0, 0.0, 0.0);
            return Ok(());
        }
        let after = number - self.mean;
        self.count -= 1.0;
        self.mean -= after / self.count;
        self.squares = (self.squares - after * (number - self.mean)).max(0.0);
        Ok(())
    }

    fn value(&self) -> Result<Value, String> {
        let count = if self.of.sample { self.count - 1.0 } else { self.count };
        if count <= 0.0 {
            return Ok(Value::Null);
        }
        let variance = self.squares / count;
        Ok(Value::Real(if self.of.root { variance.sqrt() } else { variance }))
    }
}

/// Makes the connection know them.
pub(super) fn register<C: Caller>(connection: &Connection, caller: &Rc<C>) -> Result<(), SqlError> {
    for function in FUNCTIONS {
        let (of, caller) = (Of::named(function.name), Rc::clone(caller));
        connection.create_aggregate(function.name, 1, move || Spread {
            of,
            caller: Rc::clone(&caller),
            count: 0.0,
            mean: 0.0,
            squares: 0.0,
        })?;
    }
    Ok(())
}
