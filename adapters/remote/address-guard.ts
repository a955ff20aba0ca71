import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type Address, type Entry, parseEntry } from './allow-list.ts';
import { isMetadataAddress, isMetadataName } from './metadata-services.ts';

/** RFC 6052 section 2.1: the last 32 bits are the IPv4 address that a translator will call. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
/** RFC 4291 section 2.4 as assigned by IANA: addresses outside are not global unicast. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

export type Target = { readonly host: string; readonly port: number; readonly protocol: string };

/**
 * Decides which addresses may be called. Public addresses are allowed; internal ones need an entry: a host (`backend.example`,
 * `*.example`), a network (`10.0.0.0/8`), an address, each host or address also with a port, and each of these for one tenant
 * (`acme=10.0.0.0/8`). Metadata services of clouds need an entry that names just them.
 */
export class AddressGuard {
  readonly #entries: readonly Entry[];

  /** @throws Error that names an invalid entry. */
  constructor(allow: readonly string[]) {
    this.#entries = allow.map(parseEntry);
  }

  /**
   * Guard for the calls of one tenant; `undefined` stands for the service itself.
   * @param isSigned true if the fetched document is signed, so that public addresses need no TLS.
   */
  forTenant(tenantId: string | undefined, isSigned = false): TenantAddressGuard {
    return new TenantAddressGuard(
      this.#entries.filter((entry) => entry.tenantId === undefined || entry.tenantId === tenantId),
      isSigned,
    );
  }
}

/** Rules for the calls of one tenant. */
export class TenantAddressGuard {
  readonly #entries: readonly Entry[];
  readonly #isSigned: boolean;

  constructor(entries: readonly Entry[], isSigned: boolean) {
    this.#entries = entries;
    this.#isSigned = isSigned;
  }

  /** Returns true if a connection to this address, to which `target` resolves, is allowed. */
  permits({ host, port, protocol }: Target, text: string): boolean {
    const address = parseAddress(text);
    if (address === undefined || !this.#permitsName(host, port)) return false;
    if (isMetadataAddress(address)) return this.#isListedAsSingle(address, port) || (isMetadataName(host) && this.#isNamed(host, port));
    if (this.isListedHost(host, port) || this.#isListed(address, port)) return true;
    return this.#isPublicProtocol(protocol, port) && isPublic(address);
  }

  /** @param host lower case, without the brackets of an IPv6 literal. */
  isListedHost(host: string, port: number): boolean {
    const name = withoutDot(host);
    return (
      this.#isNamed(name, port) ||
      this.#entries.some((entry) => fitsPort(entry, port) && entry.suffix !== undefined && name.endsWith(entry.suffix))
    );
  }

  isListedAddress(text: string, port: number): boolean {
    const address = parseAddress(text);
    return address !== undefined && this.#isListed(address, port);
  }

  /** Returns true if the address is rejected, whatever its name resolves to. */
  refuses(text: string): boolean {
    const url = URL.parse(text);
    if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return true;
    const target = targetOf(url);
    const { host, port } = target;
    if (isIP(host) !== 0) return !this.permits(target, host);
    if (!this.#permitsName(host, port)) return true;
    if (this.isListedHost(host, port)) return false;
    if (LOCAL_NAME.test(host)) return LOOPBACK.every((address) => !this.isListedAddress(address, port));
    // Without TLS, a name has to resolve into a listed network.
    return (
      !this.#isPublicProtocol(url.protocol, port) && !this.#entries.some((entry) => entry.network !== undefined && fitsPort(entry, port))
    );
  }

  /** Returns true for a global unicast address, after embedded IPv4 addresses are unwrapped. */
  isPublic(text: string): boolean {
    const address = parseAddress(text);
    return address !== undefined && isPublic(address);
  }

  /** A metadata service may be called by its name only if that name, or its address, is listed. */
  #permitsName(host: string, port: number): boolean {
    if (!isMetadataName(host) || this.#isNamed(host, port)) return true;
    return this.#entries.some((entry) => entry.network !== undefined && isSingleAddress(entry.network) && fitsPort(entry, port));
  }

  /** Public addresses are called over TLS. Without TLS, only the port of http is allowed, so that no other service is reached. */
  #isPublicProtocol(protocol: string, port: number): boolean {
    return protocol === 'https:' || (this.#isSigned && protocol === 'http:' && port === 80);
  }

  #isNamed(host: string, port: number): boolean {
    const name = withoutDot(host);
    return this.#entries.some((entry) => fitsPort(entry, port) && entry.host === name);
  }

  #isListed(address: Address, port: number): boolean {
    return this.#entries.some((entry) => fitsPort(entry, port) && contains(entry, address));
  }

  #isListedAsSingle(address: Address, port: number): boolean {
    return this.#entries.some(
      (entry) => entry.network !== undefined && isSingleAddress(entry.network) && fitsPort(entry, port) && contains(entry, address),
    );
  }
}

/** Target of a URL; `host` without the brackets of an IPv6 literal. */
export function targetOf(url: { hostname: string; port?: string; protocol: string }): Target {
  const { hostname, protocol } = url;
  const port = Number(url.port) || (protocol === 'https:' ? 443 : 80);
  return { host: hostname.replace(/^\[|\]$/g, '').toLowerCase(), port, protocol };
}

/** RFC 6761 section 6.3: these names always resolve to this machine. */
export const LOCAL_NAME = /(?:^|\.)localhost\.?$/;
export const LOOPBACK = ['127.0.0.1', '::1'];

/** Unwraps IPv4 inside IPv6: mapped (RFC 4291 section 2.5.5.2) and translated (RFC 6052). */
function parseAddress(text: string): Address | undefined {
  if (!ipaddr.isValid(text)) return undefined;
  const address = ipaddr.process(text);
  if (address instanceof ipaddr.IPv4 || !address.match(NAT64)) return address;
  return new ipaddr.IPv4(address.toByteArray().slice(12));
}

function isPublic(address: Address): boolean {
  if (address.range() !== 'unicast') return false;
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_UNICAST);
}

const withoutDot = (host: string) => (host.endsWith('.') ? host.slice(0, -1) : host);

function fitsPort(entry: Entry, port: number): boolean {
  return entry.port === undefined || entry.port === port;
}

/** Returns true for a network with a single address. */
function isSingleAddress([address, prefix]: NonNullable<Entry['network']>): boolean {
  return prefix === (address.kind() === 'ipv4' ? 32 : 128);
}

function contains({ network }: Entry, address: Address): boolean {
  if (network === undefined || network[0].kind() !== address.kind()) return false;
  return address.match(network[0], network[1]);
}
