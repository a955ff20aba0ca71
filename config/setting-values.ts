import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import { z } from 'zod';

export const wholeNumber = (minimum: number, maximum: number) => {
  const message = `a whole number, without a unit, between ${minimum} and ${maximum}`;
  return z
    .string()
    .regex(/^\d+$/, message)
    .transform(Number)
    .refine((value) => value >= minimum && value <= maximum, message);
};

/** One of the given words, which the error lists. */
export const oneOf = <const Word extends string>(words: readonly [Word, ...Word[]]) =>
  z.enum(words, { error: `one of ${words.join(', ')}` });

export const ratio = z
  .string()
  .regex(/^(0|1|0?\.\d{1,9}|1\.0)$/, 'a number from 0 to 1, such as 0.1')
  .transform(Number);

/** `9464` for this machine only, or `0.0.0.0:9464`. */
export const listenAddress = z.string().transform((text, context) => {
  const [, host = '127.0.0.1', port = ''] = /^(?:(.+):)?(\d{1,5})$/.exec(text) ?? [];
  const isHost = isIP(host.replace(/^\[|\]$/g, '')) !== 0 || /^[A-Za-z0-9.-]{1,253}$/.test(host);
  if (isHost && Number(port) >= 1 && Number(port) <= 65_535) return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
  context.addIssue('a port, or address and port, such as 0.0.0.0:9464');
  return z.NEVER;
});

const MAX_WORKERS = 128;

/** `auto` is the number of processors that the operating system or the container allows. */
export const workers = z.string().transform((text, context) => {
  if (text === 'auto') return Math.min(availableParallelism(), MAX_WORKERS);
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= MAX_WORKERS) return count;
  context.addIssue(`a number from 1 to ${MAX_WORKERS}, or auto`);
  return z.NEVER;
});

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
export const duration = z
  .string()
  .regex(/^\d+[smhd]?$/, 'seconds, or a number with s, m, h or d, such as 24h')
  .transform((text) => Number.parseInt(text, 10) * (UNITS[text.at(-1) ?? ''] ?? 1))
  .refine((seconds) => seconds >= 60 && seconds <= 31_536_000, 'between one minute and one year');
export const list = z.string().transform((text) =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== ''),
);

const MAX_PROXIES = 16;

/** A number counts from the end of `X-Forwarded-For`, so entries that a caller adds are ignored. */
export const proxies = z.string().transform((text, context): false | number | string => {
  if (text === 'false') return false;
  if (/^\d{1,2}$/.test(text) && Number(text) <= MAX_PROXIES) return Number(text);
  const networks = text.split(',').map((entry) => entry.trim());
  if (networks.every(isNetwork)) return networks.join(',');
  context.addIssue(
    `a number of proxies up to ${MAX_PROXIES}, or networks such as 10.0.0.0/8; "true" would trust addresses that callers forge`,
  );
  return z.NEVER;
});

export function isNetwork(text: string): boolean {
  const [address = '', prefix, ...surplus] = text.split('/');
  const bits = { 4: 32, 6: 128 }[isIP(address)];
  if (bits === undefined || surplus.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits);
}

export const publicUrl = z
  .url({ protocol: /^https?$/, error: 'an http or https address, such as https://issuer.example' })
  .transform((text) => text.replace(/\/+$/, ''))
  .refine((text) => {
    const url = new URL(text);
    return url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  }, 'without query, fragment or credentials')
  .refine((text) => /^[A-Za-z0-9/._~-]*$/.test(new URL(text).pathname), 'a plain path')
  // Published addresses and origins use one form of the host (RFC 3986 section 6.2): lower case, A-labels, no default port.
  .transform((text) => {
    const { origin, pathname } = new URL(text);
    return `${origin}${pathname.replace(/\/+$/, '')}`;
  });

/** The error never quotes the address, since a misplaced part of it may belong to the password. */
export const databaseUrl = z.string().transform((text, context) => {
  const fault = findDatabaseProblem(text);
  if (fault === undefined) return text;
  context.addIssue(fault);
  return z.NEVER;
});

function isPercentEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function findDatabaseProblem(text: string): string | undefined {
  if (/^sqlite:.+/.test(text)) return undefined;
  const form = 'sqlite:<file> or postgres://user:password@host:port/database';
  if (!/^postgres(ql)?:\/\//.test(text)) return form;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.hostname === '' || url.hash !== '' || !/^\/[^/@]+$/.test(url.pathname)) {
    return `${form}; special characters of the password are percent-encoded`;
  }
  if (![url.username, url.password, url.hostname, url.pathname].every(isPercentEncoded))
    return 'contains a "%" that does not begin a percent-encoded character; write %25 for a percent sign';
  for (const [name, value] of url.searchParams) {
    if (url.searchParams.getAll(name).length > 1) return `${name === 'sslmode' ? name : 'a parameter'} occurs twice`;
    if (name === 'sslrootcert') continue;
    if (name !== 'sslmode') return 'only the parameters sslmode and sslrootcert are supported';
    if (!/^(disable|verify-ca|verify-full)$/.test(value)) {
      return 'sslmode is disable, verify-ca or verify-full: other values allow eavesdropping';
    }
  }
  const isVerified = url.searchParams.get('sslmode')?.startsWith('verify') === true;
  return url.searchParams.has('sslrootcert') && !isVerified ? 'sslrootcert has no effect without sslmode=verify-full' : undefined;
}

/** A secret that a key provider stores. */
export type WrappedSecret = { readonly provider: string; readonly key: string; readonly version: number };

/** @returns undefined for a secret in the setting itself. */
export function wrappedSecret(text: string): WrappedSecret | undefined {
  const [, provider, key, version = '1'] =
    /^vault:([a-z0-9][a-z0-9-]{0,62}):([A-Za-z0-9][A-Za-z0-9._-]{0,127})(?::([1-9]\d{0,5}))?$/.exec(text) ?? [];
  return provider === undefined || key === undefined ? undefined : { provider, key, version: Number(version) };
}

export const masterSecret = list
  .refine((secrets) => secrets.length > 0, 'at least one secret')
  .refine(
    (secrets) => secrets.every((secret) => !secret.startsWith('vault:') || wrappedSecret(secret)),
    'a secret in Vault is written vault:<provider>:<key>, or vault:<provider>:<key>:<version>',
  )
  .refine(
    (secrets) => secrets.every((secret) => secret.startsWith('vault:') || secret.length >= 32),
    'each secret has at least 32 characters',
  )
  .refine(
    (secrets) => secrets.every((secret) => secret.startsWith('vault:') || secret.length < 32 || new Set(secret).size >= 8),
    'too few different characters; generate a random secret, for example with: openssl rand -base64 48',
  );

/** Not normalized: readers of tokens compare it exactly, and some issuers end in a slash. */
export const issuerUrl = z.url({ protocol: /^https?$/ }).refine((text) => !/[?#@]/.test(text), 'without query, fragment or credentials');

export const claimName = z.string().regex(/^[A-Za-z0-9_:/.-]{1,200}$/, 'the name of a claim');

/** The error never quotes the address, which contains a password. */
export const amqpUrl = z.string().refine((text) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^amqps?:$/.test(url.protocol) && url.hostname !== '' && url.hash === '';
}, 'amqps://user:password@host:port/vhost; special characters of the password are percent-encoded');

const MAX_ANCHORS = 100;
/** Chains of the audit log with an entry of each, as `npm run audit:verify` prints them. */
export const anchors = list.transform((entries, context) => {
  const matches = entries.map((entry) => /^([a-z0-9_-]+)=([1-9]\d{0,14}):(\S{1,200})$/.exec(entry));
  if (matches.length > MAX_ANCHORS || matches.some((match) => match === null)) {
    context.addIssue(`up to ${MAX_ANCHORS} of <chain>=<sequence>:<hash>, as npm run audit:verify prints them`);
    return z.NEVER;
  }
  return matches.map((match) => {
    const [, chain = '', sequence, hash = ''] = match ?? [];
    return { chain, sequence: Number(sequence), hash };
  });
});
