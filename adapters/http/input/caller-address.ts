import ipaddr from 'ipaddr.js';

/** What one subscriber is given, who could use a new address for every call otherwise. */
const IPV6_PREFIX = 64;
/** A proxy that does not say whom it speaks for (see TRUST_PROXY), or the operator's own network. */
const UNCOUNTED = ['loopback', 'private', 'linkLocal', 'uniqueLocal', 'carrierGradeNat'];
/** Some proxies add the port: `8.8.8.8:443`, `[2001:db8::1]:443`. */
const WITH_PORT = /^(?:\[([^\]]+)\]|(\d{1,3}(?:\.\d{1,3}){3}))(?::\d{1,5})?$/;

/** Addresses that called of late and what is made of them, which is asked several times in each request. */
let known = new Map<string, string | undefined>();
const MOST_KNOWN = 1_000;
/** No address is longer, and what a proxy hands on is written by strangers. */
const MAX_LENGTH = 64;

/** @returns undefined for an address that says nothing about who calls; what is no address counts as one caller. */
export function callerAddress(text = ''): string | undefined {
  if (text.length > MAX_LENGTH) return 'unknown';
  if (known.has(text)) return known.get(text);
  const address = read(text);
  if (known.size >= MOST_KNOWN) known = new Map();
  known.set(text, address);
  return address;
}

function read(text: string): string | undefined {
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

/** Who has one IPv4 address has a whole network of 6to4 (RFC 3056 section 2), and translators have one for all (RFC 6052). */
function embeddedAddress(address: ipaddr.IPv6): string | undefined {
  const range = address.range();
  const bytes = address.toByteArray();
  if (range === '6to4') return bytes.slice(2, 6).join('.');
  return range === 'rfc6052' ? bytes.slice(12).join('.') : undefined;
}
