// Prints the records of sessions of any daemon, from the broker: node fleet_follow.mjs nats://HOST:4222 DAEMON [SESSION] [AFTER]
// npm install @nats-io/transport-node @nats-io/jetstream
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";

/** Yields each session's records in order, from after the number `after` on. */
async function* follow(connection, daemon, session = "*", after = 0) {
  // An ordered consumer begins again where it was when the connection is back.
  const consumer = await jetstream(connection).consumers.get(`CAIRN_EV_${daemon}`, {
    filter_subjects: `cairn.${daemon}.ev.${session}`,
  });
  const last = new Map();
  for await (const message of await consumer.consume()) {
    const name = message.subject.split(".").at(-1);
    const seq = Number(message.headers.get("Cairn-Seq"));
    if (last.has(name) && seq !== last.get(name) + 1) throw new Error(`${name}: ${seq} follows ${last.get(name)}`);
    last.set(name, seq);
    if (seq > after) yield { session: name, seq, record: message.json() };
  }
}

const [server, daemon, session, after] = process.argv.slice(2);
const connection = await connect({ servers: server });
for await (const { session: name, seq, record } of follow(connection, daemon, session, Number(after ?? 0))) {
  console.log(name, seq, record.kind);
}
