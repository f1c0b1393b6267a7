//! How far the numbers of a group lie apart: standard deviations and variances, as floats.

use std::rc::Rc;

use sqlite::{Aggregate, Arguments, Connection};
use sqltext::error::SqlError;
use store::definition::SqlType;
use store::value::Value;

use super::def::{Caller, FunctionDef, Numeric, Returns, Source, real};

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
        numeric: None,
        of_floats: None,
        of_spans: None,
        meaning,
        example,
        answer,
    }
}

/// The functions' lines.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    own("stddev", "the standard deviation of a sample, a float; also `stddev_samp`", "(SELECT stddev(value) FROM json_each('[1,3]'))", "1.4142135623730951").numeric(Numeric::Wide("numeric_stddev")),
    own("stddev_pop", "the standard deviation of all there is, a float", "(SELECT stddev_pop(value) FROM json_each('[1,3]'))", "1.0").numeric(Numeric::Wide("numeric_stddev_pop")),
    own("stddev_samp", "as `stddev`", "(SELECT stddev_samp(value) FROM json_each('[1]')) IS NULL", "1").numeric(Numeric::Wide("numeric_stddev_samp")),
    own("var_pop", "the variance of all there is, a float", "(SELECT var_pop(value) FROM json_each('[1,3]'))", "1.0").numeric(Numeric::Wide("numeric_var_pop")),
    own("var_samp", "as `variance`", "(SELECT var_samp(value) FROM json_each('[1]')) IS NULL", "1").numeric(Numeric::Wide("numeric_var_samp")),
    own("variance", "the variance of a sample, a float; also `var_samp`", "(SELECT variance(value) FROM json_each('[1,3]'))", "2.0").numeric(Numeric::Wide("numeric_variance")),
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
    /// How many are NaN or infinite: then nothing is known of the others.
    specials: i64,
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
            if !number.is_finite() {
                self.specials += 1;
                return Ok(());
            }
            self.count += 1.0;
            let before = number - self.mean;
            self.mean += before / self.count;
            self.squares += before * (number - self.mean);
        }
        Ok(())
    }

    fn take_back(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        let Some(number) = self.number(arguments)? else { return Ok(()) };
        if !number.is_finite() {
            self.specials -= 1;
            return Ok(());
        }
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
        let specials = self.specials as f64;
        let count = self.count + specials - if self.of.sample { 1.0 } else { 0.0 };
        if count > 0.0 && self.specials > 0 {
            return Ok(Value::from(f64::NAN));
        }
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
            specials: 0,
        })?;
    }
    Ok(())
}
