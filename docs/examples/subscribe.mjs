// Prints what becomes of the sessions of a tenant. AMQP_URL is the address of the broker with the account of the
// subscriber; QUEUE and PATTERN are optional. Needs the package `amqplib`.
import { connect } from 'amqplib';

const { AMQP_URL, QUEUE = 'shop.sessions', PATTERN = 'acme.#' } = process.env;
const REMEMBERED = 10_000;

if (!AMQP_URL) end('AMQP_URL is missing');
const connection = await connect(AMQP_URL).catch((error) => end(`the broker is not there: ${error.message}`));
connection.on('error', (error) => console.error(error.message));
connection.on('close', () => end('the connection to the broker has ended'));
const channel = await connection.createChannel();

// A queue that outlives this program and the broker: events wait in it while nobody reads.
await channel.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
await channel.bindQueue(QUEUE, 'vidimus.events', PATTERN);
await channel.prefetch(50);

// The newest version of each session, since an event may come twice. Keep it where you keep what you do with events.
const versions = new Map();

await channel.consume(QUEUE, (message) => {
  if (message === null) process.exit(1);
  const { subject, time, data } = JSON.parse(message.content.toString('utf8'));
  if (data.version > (versions.get(subject) ?? 0)) {
    versions.delete(subject);
    versions.set(subject, data.version);
    if (versions.size > REMEMBERED) versions.delete(versions.keys().next().value);
    console.log(`${time} ${data.tenantId} ${data.kind} ${subject} ${data.status}`);
  }
  // Only now: what is not acknowledged comes again.
  channel.ack(message);
});
console.log(`waiting for ${PATTERN}`);

// What runs this program starts it again, as systemd does with `Restart=always`.
function end(reason) {
  console.error(reason);
  process.exit(1);
}
