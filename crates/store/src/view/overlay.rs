//! How a statement of a transaction reads: its own list laid over the store, row by row, in every order.

use crate::commit::write_set::{Laid, Place, is_there};
use crate::error::ReadError;
use crate::row::RowBuf;
use crate::table::Table;
use crate::view::View;
use crate::view::scan::IndexScan;

impl View<'_> {
    /// Copies a row of the transaction's list, unless it is gone or its deadline has come.
    pub(crate) fn copy_own(&self, laid: Laid<'_>, row: &mut RowBuf) -> bool {
        match laid {
            Laid::Row(own) if is_there(own, self.now()) => {
                row.clone_from_row(own);
                true
            }
            _ => false,
        }
    }

    /// Whether the transaction changed this stored row.
    #[inline]
    pub(crate) fn is_laid_over(&self, table: &Table, row: &RowBuf) -> bool {
        self.own.is_some_and(|own| own.laid(table.id(), row.key()).is_some())
    }

    /// Copies the transaction's next row of a table, in no order; false at the end.
    pub(crate) fn next_own(&self, table: &Table, next: &mut usize, row: &mut RowBuf) -> bool {
        let Some(own) = self.own else { return false };
        while let Some((slot, found)) = own.row_from(table.id(), *next) {
            *next = slot + 1;
            if self.copy_own(Laid::Row(found), row) {
                return true;
            }
        }
        false
    }
}

/// Two orders on their way to one: the stored rows and the transaction's own.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    /// A stored row that was read and not handed out, with its sort key.
    ahead: Option<(Vec<u8>, RowBuf)>,
    stored_ended: bool,
    /// The last own row handed out.
    after: Option<Place>,
    /// Buffers to be used again.
    spare: Option<(Vec<u8>, RowBuf)>,
}

impl Merge {
    /// Copies the next row of either side.
    pub(crate) fn next(
        &mut self,
        scan: &mut IndexScan,
        view: &View<'_>,
        row: &mut RowBuf,
    ) -> Result<bool, ReadError> {
        self.look_ahead(scan, view)?;
        if self.next_own(scan, view, row) {
            return Ok(true);
        }
        let Some((key, mut ahead)) = self.ahead.take() else { return Ok(false) };
        std::mem::swap(row, &mut ahead);
        self.spare = Some((key, ahead));
        Ok(true)
    }

    /// Reads the next stored row that the transaction left as it is.
    fn look_ahead(&mut self, scan: &mut IndexScan, view: &View<'_>) -> Result<(), ReadError> {
        if self.ahead.is_some() || self.stored_ended {
            return Ok(());
        }
        let (mut key, mut row) = self.spare.take().unwrap_or_default();
        while scan.next_stored(view, &mut row)? {
            if !view.is_laid_over(&scan.table, &row) {
                scan.sort_key(&row, &mut key);
                self.ahead = Some((key, row));
                return Ok(());
            }
        }
        self.stored_ended = true;
        Ok(())
    }

    /// Copies the next own row, if it comes before the stored one. Of equals the stored row is first.
    fn next_own(&mut self, scan: &IndexScan, view: &View<'_>, row: &mut RowBuf) -> bool {
        let Some(own) = view.own.and_then(|own| own.ordered(scan.table.id(), &scan.index)) else {
            return false;
        };
        while let Some((place, found)) = own.next(&scan.lower, &scan.upper, self.after.as_ref(), scan.reverse)
        {
            let first = self.ahead.as_ref().is_none_or(|(stored, _)| {
                if scan.reverse { *place.0 > **stored } else { *place.0 < **stored }
            });
            if !first {
                return false;
            }
            self.after = Some(place.clone());
            if view.copy_own(Laid::Row(found), row) {
                return true;
            }
        }
        false
    }
}
