//! The attributes that most healthy orders lack: the reason of `Error`, the notices still to send, and the operators who
//! paused it or have taken it on.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::task::{Notice, NoticeKind, Pause, Reason, Taken};

use super::{Item, Reader, Unreadable, number, put, put_if, text, time};

pub(super) fn reason_value(reason: &Reason) -> AttributeValue {
    let mut item = Item::with_capacity(5);
    put(&mut item, "Code", text(&*reason.code));
    put(&mut item, "Message", text(&*reason.message));
    put_if(&mut item, "Step", reason.step.as_deref().map(text));
    put(&mut item, "SinceVersion", number(reason.since_version));
    put_if(&mut item, "Earlier", reason.earlier.as_deref().map(reason_value));
    AttributeValue::M(item)
}

pub(super) fn reason(mut reader: Reader) -> Result<Reason, Unreadable> {
    Ok(Reason {
        code: reader.text("Code")?.into(),
        message: reader.text("Message")?.into(),
        step: reader.text_if("Step")?.map(Into::into),
        since_version: reader.number("SinceVersion")?,
        earlier: reader.map_if("Earlier")?.map(reason).transpose()?.map(Box::new),
    })
}

pub(super) fn pause_value(pause: &Pause) -> AttributeValue {
    let mut item = Item::with_capacity(4);
    put(&mut item, "By", text(&*pause.by));
    put(&mut item, "Reason", text(&*pause.reason));
    put(&mut item, "Since", time(pause.since));
    put(&mut item, "Version", number(pause.version));
    AttributeValue::M(item)
}

pub(super) fn pause(mut reader: Reader) -> Result<Pause, Unreadable> {
    Ok(Pause {
        by: reader.text("By")?.into(),
        reason: reader.text("Reason")?.into(),
        since: reader.time("Since")?,
        version: reader.number("Version")?,
    })
}

pub(super) fn taken_value(taken: &Taken) -> AttributeValue {
    let mut item = Item::with_capacity(2);
    put(&mut item, "By", text(&*taken.by));
    put(&mut item, "Since", time(taken.since));
    AttributeValue::M(item)
}

pub(super) fn taken(mut reader: Reader) -> Result<Taken, Unreadable> {
    Ok(Taken { by: reader.text("By")?.into(), since: reader.time("Since")? })
}

pub(super) fn notice_value(notice: &Notice) -> AttributeValue {
    let mut item = Item::with_capacity(3);
    put(&mut item, "Kind", text(notice.kind.stored()));
    put(&mut item, "Version", number(notice.version));
    put_if(&mut item, "Resends", (notice.resends > 0).then(|| number(notice.resends)));
    AttributeValue::M(item)
}

pub(super) fn notice(mut reader: Reader) -> Result<Notice, Unreadable> {
    Ok(Notice {
        kind: reader.word("Kind", notice_kind)?,
        version: reader.number("Version")?,
        resends: reader.number_if("Resends")?.unwrap_or(0),
    })
}

fn notice_kind(name: &str) -> Option<NoticeKind> {
    NoticeKind::ALL.into_iter().find(|kind| kind.stored() == name)
}
