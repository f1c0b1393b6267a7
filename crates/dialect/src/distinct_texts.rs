//! `string_agg(DISTINCT text, separator)`: SQLite's aggregates of distinct values have one argument. So the texts are
//! gathered, each once and in their order, and joined behind the group.

use sqltext::ast::{DuplicateTreatment, Function, FunctionArgumentClause, FunctionArgumentList};
use store::definition::SqlType;

use super::calls::expression_of;
use super::nulls::Sorted;
use super::out::{Out, call};
use super::types::is_text;
use super::{Step, Stop, Translator};

/// What PostgreSQL calls it.
const NAME: &str = "string_agg";

impl<'a> Translator<'a, '_> {
    /// Whether a call is one of these.
    pub(super) fn is_distinct_texts(name: &str, list: &FunctionArgumentList) -> bool {
        let distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
        distinct && list.args.len() == 2 && name.eq_ignore_ascii_case(NAME)
    }

    /// The call from its parenthesis on.
    pub(super) fn distinct_texts(
        &mut self,
        list: &FunctionArgumentList,
        function: &Function,
    ) -> Step<Out<'a>> {
        let [text, separator] = &list.args[..] else { return Err(Stop::Unknown) };
        self.sign("(")?;
        self.keyword("DISTINCT")?;
        let mut text = self.expression(expression_of(text).ok_or(Stop::Unknown)?)?;
        self.sign(",")?;
        let mut separator = self.expression(expression_of(separator).ok_or(Stop::Unknown)?)?;
        for part in [&mut text, &mut separator] {
            self.suggest(part, SqlType::Text)?;
        }
        if text.ty.is_some_and(|ty| !is_text(ty)) {
            return Err(self.no_function(NAME, &[text, separator]));
        }
        let mut order = Out::made(" ORDER BY", text.start());
        match &list.clauses[..] {
            [] => order.push(text.clone()),
            [FunctionArgumentClause::OrderBy(terms)] => {
                self.keyword("ORDER")?;
                self.keyword("BY")?;
                order.push(self.terms(terms, &[], Sorted::Results)?.0);
            }
            _ => return Err(Stop::Unknown),
        }
        self.sign(")")?;
        let mut texts = text;
        texts.push(order);
        let mut texts = texts.wrapped("json_group_array(DISTINCT ", ")");
        self.behind_call(function, &mut texts)?;
        Ok(call("texts_joined", [texts, separator]).typed(SqlType::Text).labelled(NAME))
    }
}
