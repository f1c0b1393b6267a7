//! `aggregate(share) WITHIN GROUP (ORDER BY value)`: SQLite is given the value as an argument, sorted.

use pgcatalog::function;
use sqltext::ast::{Function, FunctionArgumentList, OrderByExpr};
use sqltext::error::state;
use sqltext::token::Token;
use store::definition::SqlType;

use super::calls::{expression_of, finished_call};
use super::clauses::ORDER_WORDS;
use super::numeric::Numbers;
use super::out::Out;
use super::types::Told;
use super::{Step, Stop, Translator};

impl<'a> Translator<'a, '_> {
    /// A call from its parenthesis on.
    pub(super) fn ordered_set(
        &mut self,
        name: &str,
        token: Token<'a>,
        list: &FunctionArgumentList,
        function: &Function,
    ) -> Step<Out<'a>> {
        let name = name.to_ascii_lowercase();
        if !function::is_ordered(&name) {
            let message = format!("WITHIN GROUP is not supported for {name}");
            return Err(self.error_at(Some(token), state::NOT_SUPPORTED, message));
        }
        self.sign("(")?;
        let share = match &list.args[..] {
            [] => None,
            [one] => Some(self.expression(expression_of(one).ok_or(Stop::Unknown)?)?),
            _ => return Err(self.no_aggregate(&name, token)),
        };
        self.sign(")")?;
        let [term] = &function.within_group[..] else { return Err(self.no_aggregate(&name, token)) };
        if function.over.is_some() {
            let message = format!("OVER is not supported for ordered-set aggregate {name}");
            return Err(self.error_at(Some(token), state::NOT_SUPPORTED, message));
        }
        let (value, words) = self.sorted_value(term)?;
        self.check_share(&name, token, share.as_ref(), &value)?;
        let told = [Told::of(&value)];
        let numbers = Numbers::of(&name, std::slice::from_ref(&value));
        let mut inner = numbers.argument(&name, value.clone(), false);
        if let Some(mut share) = share {
            self.suggest(&mut share, SqlType::Float8)?;
            inner = Out::joined([inner, share], ",");
        }
        inner.push_str(" ORDER BY");
        inner.push(self.sort_key(value));
        inner.push(words);
        let called = if let Numbers::Exact(function) = numbers { function } else { &name };
        let mut out = inner.wrapped(&format!("{called}("), ")");
        self.behind_call(function, &mut out)?;
        Ok(finished_call(out, &name, &told, numbers))
    }

    /// Whether there is such an aggregate of such a value.
    fn check_share(
        &self,
        name: &str,
        token: Token<'a>,
        share: Option<&Out<'a>>,
        value: &Out<'a>,
    ) -> Step<()> {
        if share.is_some() == name.ends_with("mode") {
            return Err(self.no_aggregate(name, token));
        }
        let several = share.and_then(|share| share.ty).is_some_and(SqlType::is_array);
        let between = name == "percentile_cont";
        if several || (between && value.ty == Some(SqlType::Interval)) {
            let what = if several { "several shares" } else { "intervals" };
            let message = format!("{name} of {what} is not supported");
            return Err(self.error_at(Some(token), state::NOT_SUPPORTED, message));
        }
        let number = value.ty.is_none_or(|ty| ty.is_number() || ty == SqlType::Unknown);
        if between && !number { Err(self.no_aggregate(name, token)) } else { Ok(()) }
    }

    fn no_aggregate(&self, name: &str, token: Token<'a>) -> Stop {
        let message = format!("there is no aggregate {name} of these arguments");
        self.error_at(Some(token), "42883", message)
    }

    /// `WITHIN GROUP (ORDER BY value DESC)`: the value, and the words behind it.
    fn sorted_value(&mut self, term: &OrderByExpr) -> Step<(Out<'a>, Out<'a>)> {
        self.keyword("WITHIN")?;
        self.keyword("GROUP")?;
        self.sign("(")?;
        self.keyword("ORDER")?;
        self.keyword("BY")?;
        let value = self.expression(&term.expr)?;
        let mut words = Out::default();
        self.pass_words(ORDER_WORDS, &mut words);
        self.sign(")")?;
        Ok((value, words))
    }
}
