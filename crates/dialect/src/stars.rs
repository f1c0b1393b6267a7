//! `*` and `t.*` where a table has its columns under other names than the statement gave them.

use sqltext::token::{quoted_name, unquoted};

use super::out::Out;
use super::scope::Relation;
use super::{Item, Step, Translator};

impl<'a> Translator<'a, '_> {
    /// Whether `*` or `t.*` is next and stands for such columns. A table without a name could not be told from others.
    pub(super) fn next_is_star_of_renamed(&self) -> bool {
        let qualified = self.next_is_sign(1, ".") && self.next_is_sign(2, "*");
        if !qualified && !self.next_is_sign(0, "*") {
            return false;
        }
        let qualifier = self.peek().filter(|_| qualified).map(|name| unquoted(name.text));
        let relations = self.scopes.around().next().unwrap_or_default();
        let renamed =
            |relation: &Relation| is_meant(relation, qualifier.as_deref()) && !relation.renamed.is_empty();
        relations.iter().any(renamed) && relations.iter().all(|relation| !relation.name.is_empty())
    }

    /// It, column by column where a table of ours has them.
    pub(super) fn renamed_columns(&mut self, items: &mut Vec<Item>, out: &mut Out<'a>) -> Step<()> {
        let first = self.token()?;
        let qualifier = (!first.is_sign("*")).then(|| unquoted(first.text));
        if qualifier.is_some() {
            self.sign(".")?;
            self.sign("*")?;
        }
        let relations = self.scopes.around().next().map(<[Relation]>::to_vec).unwrap_or_default();
        let mut texts = Vec::new();
        for relation in relations.iter().filter(|relation| is_meant(relation, qualifier.as_deref())) {
            let table = quoted_name(&relation.name);
            if relation.renamed.is_empty() {
                texts.push(format!("{table}.*"));
                let columns = self.star(Some(&relation.name));
                items.push(Item { star: true, columns, ..Item::default() });
                continue;
            }
            for (name, own) in &relation.renamed {
                texts.push(format!("{table}.{} AS {}", quoted_name(own), quoted_name(name)));
                let ty = self.type_in(relation, name);
                items.push(Item { ty, label: Some(name.clone()), ..Item::default() });
            }
        }
        out.push(Out::made(texts.join(", "), first.start));
        Ok(())
    }
}

fn is_meant(relation: &Relation, qualifier: Option<&str>) -> bool {
    qualifier.is_none_or(|name| relation.name.eq_ignore_ascii_case(name))
}
