import ipaddr from 'ipaddr.js';

/** Prefix length that one subscriber gets; within it, a caller could use a new address for each call. */
const IPV6_PREFIX = 64;
/** Ranges of a proxy that does not forward the caller's address (see TRUST_PROXY), or of the operator's network. */
const UNCOUNTED = ['loopback', 'private', 'linkLocal', 'uniqueLocal', 'carrierGradeNat'];
/** Some proxies add the port: `8.8.8.8:443`, `[2001:db8::1]:443`. */
const WITH_PORT = /^(?:\[([^\]]+)\]|(\d{1,3}(?:\.\d{1,3}){3}))(?::\d{1,5})?$/;

/** Recent addresses with their normalized form, which each request needs several times. */
let cachedAddresses = new Map<string, string | undefined>();
const MAX_CACHED = 1_000;
/** No address is longer; the header that a proxy forwards can contain anything. */
const MAX_LENGTH = 64;

/** @returns undefined for an address that does not identify a caller; all invalid addresses count as one caller. */
export function callerAddress(text = ''): string | undefined {
  if (text.length > MAX_LENGTH) return 'unknown';
  if (cachedAddresses.has(text)) return cachedAddresses.get(text);
  const address = normalize(text);
  if (cachedAddresses.size >= MAX_CACHED) cachedAddresses = new Map();
  cachedAddresses.set(text, address);
  return address;
}

function normalize(text: string): string | undefined {
  const [, inBrackets, beforePort] = WITH_PORT.exec(text) ?? [];
  const bare = inBrackets ?? beforePort ?? text;
  if (!ipaddr.isValid(bare)) return 'unknown';
  const address = ipaddr.process(bare);
  if (UNCOUNTED.includes(address.range())) return undefined;
  if (address instanceof ipaddr.IPv4) return address.toString();
  const embedded = embeddedAddress(address);
  if (embedded !== undefined) return embedded;
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${address.toString()}/${IPV6_PREFIX}`);
  return network.toString();
}

/**
 * The owner of one IPv4 address has a whole 6to4 network (RFC 3056 section 2), and translators have one network for all addresses (RFC
 * 6052).
 */
function embeddedAddress(address: ipaddr.IPv6): string | undefined {
  const range = address.range();
  const bytes = address.toByteArray();
  if (range === '6to4') return bytes.slice(2, 6).join('.');
  return range === 'rfc6052' ? bytes.slice(12).join('.') : undefined;
}
