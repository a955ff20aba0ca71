import { readFileSync } from 'node:fs';
import type { Options, SocketOptions } from 'amqplib';

/** Seconds; a connection that is silent for twice as long is given up. */
const HEARTBEAT = 15;
/** For each step of opening a connection. */
const TIMEOUT_MS = 10_000;

/** Where the broker is, without who uses it. */
export function placeOf(address: string): string {
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname}`;
}

/**
 * Name and password are decoded here: the client would take a password in UTF-8 for one in Latin 1.
 * @throws Error when they are not percent-encoded.
 */
export function connectionOptions(address: string): Options.Connect {
  const { protocol, hostname, port, username, password, pathname } = new URL(address);
  return {
    protocol: protocol.slice(0, -1),
    hostname: hostname.replace(/^\[|\]$/g, ''),
    ...(port !== '' && { port: Number(port) }),
    ...((username !== '' || password !== '') && { username: decode(username), password: decode(password) }),
    vhost: pathname.slice(1),
    heartbeat: HEARTBEAT,
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error('AMQP_URL: special characters of name and password are percent-encoded');
  }
}

/**
 * @param ca path of a file with authorities, in PEM, instead of those that everybody trusts.
 * @throws Error when it cannot be read.
 */
export function socketOptions(ca: string | undefined): SocketOptions {
  return {
    noDelay: true,
    keepAlive: true,
    keepAliveDelay: 10_000,
    timeout: TIMEOUT_MS,
    clientProperties: { connection_name: 'vidimus' },
    ...(ca !== undefined && { ca: readAuthority(ca) }),
  };
}

function readAuthority(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new Error(`AMQP_CA: ${file} cannot be read`, { cause });
  }
}

/** What an operator is told; what the broker says names the user at most. */
export function explain(error: Error): string {
  const { code } = error as { code?: unknown };
  const text = error.message.split('\n', 1)[0]?.slice(0, 300) ?? '';
  if (/ACCESS.REFUSED.*Login/i.test(text)) return 'the user is not let in: check name and password in AMQP_URL';
  // What the broker says of this the client does not pass on.
  if (/ConnectionOpenOk; got <ConnectionClose/.test(text))
    return 'there is no such virtual host, or the user has no rights in it: check the path of AMQP_URL';
  if (/ACCESS.REFUSED/i.test(text)) return `the user lacks a right, see docs/events.md: ${text}`;
  if (/PRECONDITION.FAILED/i.test(text)) return `an exchange or a queue is there with other properties and has to be deleted: ${text}`;
  if (/certificate|\b(TLS|SSL)\b/i.test(text)) return text;
  return typeof code === 'string' ? `it does not answer (${code})` : text;
}
