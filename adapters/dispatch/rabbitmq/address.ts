import { readFileSync } from 'node:fs';
import type { Options, SocketOptions } from 'amqplib';

/** Seconds; a connection that is silent for twice as long is closed. */
const HEARTBEAT = 15;
/** Timeout of each step of opening a connection. */
const TIMEOUT_MS = 10_000;

export function brokerWithoutCredentials(address: string): string {
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname}`;
}

/**
 * Decodes name and password: the client would read a password in UTF-8 as Latin 1.
 * @throws Error if they are not percent-encoded.
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
    throw new Error('AMQP_URL: percent-encode special characters of name and password');
  }
}

/**
 * @param ca path of a file with authorities, in PEM, instead of those that Node trusts.
 * @throws Error if it cannot be read.
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

/** Describes a fault for the operator; messages of the broker contain at most the name of the user. */
export function explain(error: Error): string {
  const { code } = error as { code?: unknown };
  const text = error.message.split('\n', 1)[0]?.slice(0, 300) ?? '';
  if (/ACCESS.REFUSED.*Login/i.test(text)) return 'the broker rejects the user: check name and password in AMQP_URL';
  // The client does not pass on the broker's own message in this case.
  if (/ConnectionOpenOk; got <ConnectionClose/.test(text))
    return 'there is no such virtual host, or the user has no rights in it: check the path of AMQP_URL';
  if (/ACCESS.REFUSED/i.test(text)) return `the user lacks a right, see docs/reference/events.md: ${text}`;
  if (/PRECONDITION.FAILED/i.test(text)) return `an exchange or queue exists with other properties and must be deleted: ${text}`;
  if (/certificate|\b(TLS|SSL)\b/i.test(text)) return text;
  return typeof code === 'string' ? `it does not answer (${code})` : text;
}
