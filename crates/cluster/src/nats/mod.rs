//! NATS JetStream as the carrier: a stream in files, and a push consumer without acknowledgements.

mod connect;

use std::future::Future;
use std::sync::Arc;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, push};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::{Message, Subscriber};
use bytes::Bytes;
use engine::Bus;
use futures_util::{StreamExt, stream};
use store::definition::ServerDef;

use crate::broken::Origin;
use crate::carrier::{Answer, Answering, Begun, Carrier, Delivered, Delivery, Failure, Link, To, Words};
use crate::follow::Numbered;
use crate::limits::{IDLE_HEARTBEAT, SILENCE_NS};
use crate::member::{Flight, Stored};
use connect::Connected;

/// See the module.
pub(crate) struct Nats(Arc<ServerDef>);

impl Carrier for Nats {
    type Link = Connected;

    const NUMBERED: Numbered = Numbered::OneByOne;
    const SILENCE_NS: u64 = SILENCE_NS;

    fn new(server: &Arc<ServerDef>, _: &Arc<Bus>) -> Self {
        Self(Arc::clone(server))
    }

    fn connect(&mut self) -> impl Future<Output = Result<Connected, Failure>> {
        Connected::to(&self.0)
    }
}

impl Link for Connected {
    type Delivery = push::Messages;
    type Words = Heard;

    /// NATS names none: a stream that lost everything has its name and age of before.
    fn origin(&self) -> Origin {
        Origin::default()
    }

    fn publish(&self, flight: &Flight) -> Answering {
        let message = PublishMessage::build().payload(flight.bytes.to_vec().into()).message_id(&flight.name);
        let message = match flight.behind {
            Some(last) => message.expected_last_sequence(last),
            None => message,
        };
        let (context, subject) = (self.context.clone(), self.subject.clone());
        Box::pin(async move {
            let answer = match context.send_publish(subject, message).await {
                Ok(answer) => answer.await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(stored) if stored.duplicate => Ok(Answer::Known(stored.sequence)),
                Ok(stored) => Ok(Answer::Stored(Stored::at(stored.sequence))),
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(Answer::Refused),
                Err(error) => Err(Failure::of("the bus does not acknowledge", &error)),
            }
        })
    }

    async fn listen(&mut self, node: u64) -> Result<Heard, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::of("the other caches are not heard", error);
        let all = self.client.subscribe(self.aside(To::All)).await.map_err(|error| failed(&error))?;
        let own = self.client.subscribe(self.aside(To::One(node))).await.map_err(|error| failed(&error))?;
        Ok(Heard(stream::select(all, own)))
    }

    async fn say(&self, to: To, bytes: Vec<u8>) {
        // A connection that is lost is noticed by who waits for an answer of the stream.
        let _said = self.client.publish(self.aside(to), bytes.into()).await;
    }

    /// A stream whose first messages expired begins with the first that is left: the follower sees that.
    async fn deliver(&mut self, from: u64) -> Result<Begun<push::Messages>, Failure> {
        let config = push::Config {
            deliver_subject: self.client.new_inbox(),
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from },
            ack_policy: AckPolicy::None,
            flow_control: true,
            idle_heartbeat: IDLE_HEARTBEAT,
            memory_storage: true,
            num_replicas: 1,
            ..push::Config::default()
        };
        let failed = |error: &dyn std::fmt::Display| Failure::of("the stream is not delivered", error);
        let consumer = self.stream.create_consumer(config).await.map_err(|error| failed(&error))?;
        consumer.messages().await.map(Begun::Delivers).map_err(|error| failed(&error))
    }
}

impl Connected {
    /// Where words are said that no stream keeps.
    fn aside(&self, to: To) -> String {
        match to {
            To::All => format!("{}.rows", self.name),
            To::One(node) => format!("{}.rows.{node:016x}", self.name),
        }
    }
}

/// Words to all, and to this cache.
pub(crate) struct Heard(stream::Select<Subscriber, Subscriber>);

impl Words for Heard {
    type Bytes = Bytes;

    async fn next(&mut self) -> Result<Bytes, Failure> {
        let word = StreamExt::next(&mut self.0).await;
        word.map(|word| word.payload).ok_or_else(|| Failure::new("the connection was closed"))
    }
}

impl Delivery for push::Messages {
    type Bytes = Bytes;

    async fn next(&mut self) -> Result<Delivered<Bytes>, Failure> {
        let message = StreamExt::next(self).await;
        let message = message.ok_or_else(|| Failure::new("the connection was closed"))?;
        let message = message.map_err(|error| Failure::of("the stream is not heard", &error))?;
        let info = message.info().map_err(|error| Failure::of("a message has no number", &error))?;
        let sequence = info.stream_sequence;
        let Message { payload, .. } = message.message;
        Ok(Delivered { message: Some((sequence, payload)), passed: sequence })
    }
}
