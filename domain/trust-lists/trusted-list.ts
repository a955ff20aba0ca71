import { createHash, hash } from 'node:crypto';
import { defined } from '../shared/defined.ts';
import { isListOfLists, type ListPointer, MAX_POINTERS, MAX_POINTERS_READ, pointerOf } from './list-pointer.ts';
import type { TrustedEntity, TrustedService, TrustList } from './lote.ts';
import { MAX_CERTIFICATES, withinBounds } from './lote.ts';
import { isSelectable } from './select-certificates.ts';
import { type FormerState, MAX_STATES } from './service-history.ts';
import { parseDateTime, SKEW_SECONDS } from './signed-list.ts';
import { TrustListRefusal } from './trust-list-refusal.ts';

const TSL = 'http://uri.etsi.org/02231/v2#';

/** How a trusted list begins (ETSI TS 119 612 annex B). */
export const TRUSTED_LIST_ROOT = { namespace: TSL, name: 'TrustServiceStatusList' } as const;

/** An element of a signed list without comments and namespace declarations. */
export type ListElement = {
  readonly namespace: string;
  readonly name: string;
  /** Those without a prefix. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly ListElement[];
  /** Its own text, trimmed. */
  readonly text: string;
};

/** The rules of parsing that this reader follows (section 5.3.1). */
const VERSIONS = ['5', '6'];
/** Of those that vouch for something; a list with more could not be searched in time. */
const MAX_SERVICES = 5_000;
/** Extensions that may be critical: they say more about a service, and nothing against it (section 5.5.9.4). */
const UNDERSTOOD = new Set(['AdditionalServiceInformation']);
/** Values of `Critical`; without it an extension is not critical. Any other value counts as true. */
const NOT_CRITICAL = new Set(['', 'false', '0']);

/**
 * Reads a verified list in XML (ETSI TS 119 612) part by part, so that no tree of the whole list is needed. Of the services it
 * keeps those that can be selected.
 */
export class TrustedListReader {
  readonly #now: Date;
  readonly #schemes: ListElement[] = [];
  readonly #providers: { readonly information: ListElement[]; readonly services: TrustedService[] }[] = [];
  #services = 0;
  #certificates = 0;
  /** A closed list is read although its providers are malformed. */
  #fault: unknown;

  constructor(now: Date) {
    this.#now = now;
  }

  /** Whether the element at this path of local names below the root is passed to `take` as a whole. */
  static isPart(path: readonly string[]): boolean {
    return path.length === 1 ? path[0] === 'SchemeInformation' : PARTS.has(path.join('/'));
  }

  /** A `TrustServiceProvider` begins. */
  beginProvider(): void {
    this.#providers.push({ information: [], services: [] });
  }

  /** @param part at a path of `isPart`, in the order of the document. */
  take(part: ListElement): void {
    if (part.name === 'SchemeInformation') this.#schemes.push(part);
    else if (part.name === 'TSPInformation') this.#providers.at(-1)?.information.push(part);
    else this.#takeService(part);
  }

  #takeService(part: ListElement): void {
    if (this.#fault !== undefined) return;
    try {
      const services = parseService(part, this.#now);
      this.#services += services.length;
      this.#certificates += services.reduce((sum, { certificates }) => sum + certificates.length, 0);
      if (this.#services > MAX_SERVICES) throw new TrustListRefusal('malformed', 'too many services');
      if (this.#certificates > MAX_CERTIFICATES) throw new TrustListRefusal('malformed', 'too many certificates');
      this.#providers.at(-1)?.services.push(...services);
    } catch (error) {
      this.#fault = error;
    }
  }

  /** @throws TrustListRefusal `malformed`, `version`, `critical_extension`, `from_the_future`, `outdated`. */
  finish(): TrustList {
    const [scheme, ...more] = this.#schemes;
    if (scheme === undefined || more.length > 0) throw new TrustListRefusal('malformed', 'SchemeInformation');
    if (!VERSIONS.includes(one(scheme, 'TSLVersionIdentifier').text)) throw new TrustListRefusal('version');
    if (hasUnknownCritical(scheme, 'SchemeExtensions')) throw new TrustListRefusal('critical_extension', 'SchemeExtensions');
    const issuedAt = parseDateTime(one(scheme, 'ListIssueDateTime').text, 'ListIssueDateTime');
    if (issuedAt.getTime() > this.#now.getTime() + SKEW_SECONDS * 1000) throw new TrustListRefusal('from_the_future', 'ListIssueDateTime');
    const sequenceNumber = parseNumber(one(scheme, 'TSLSequenceNumber').text);
    // Section 5.3.15: an empty one closes the list
    const [end] = all(one(scheme, 'NextUpdate'), 'dateTime');
    const territory = all(scheme, 'SchemeTerritory')[0]?.text.trim();
    const isPointing = isListOfLists(one(scheme, 'TSLType').text.trim());
    const about = { sequenceNumber, issuedAt, ...defined({ territory }), ...(isPointing && { isListOfLists: true as const }) };
    if (end === undefined) return withinBounds({ ...about, nextUpdate: null, entities: [] });
    const nextUpdate = parseDateTime(end.text, 'NextUpdate');
    if (nextUpdate <= this.#now) throw new TrustListRefusal('outdated', 'NextUpdate has passed');
    const named = all(scheme, 'PointersToOtherTSL').flatMap((list) => all(list, 'OtherTSLPointer'));
    const pointers = named.slice(0, MAX_POINTERS_READ).flatMap(parsePointer);
    if (named.length > MAX_POINTERS_READ || pointers.length > MAX_POINTERS) throw new TrustListRefusal('malformed', 'too many pointers');
    const entities = this.#providers.map(parseProvider);
    if (this.#fault !== undefined) throw this.#fault;
    return withinBounds({
      ...about,
      nextUpdate,
      entities: entities.filter(({ services }) => services.length > 0),
      ...(pointers.length > 0 && { pointers }),
    });
  }
}

const PROVIDER = 'TrustServiceProviderList/TrustServiceProvider';
const PARTS = new Set([`${PROVIDER}/TSPInformation`, `${PROVIDER}/TSPServices/TSPService`]);

/** Whether the element at this path below the root is a provider. */
export function isProvider(path: readonly string[]): boolean {
  return path.length === 2 && path.join('/') === PROVIDER;
}

/** Section 5.3.13: what is said of the other list stands in elements of which each has one member. */
function parsePointer(pointer: ListElement): readonly ListPointer[] {
  const [said] = all(pointer, 'AdditionalInformation');
  const others = said === undefined ? [] : all(said, 'OtherInformation').flatMap(({ children }) => children);
  const about = (name: string) => others.find((element) => element.name === name)?.text.trim();
  const signers = all(pointer, 'ServiceDigitalIdentities')
    .flatMap((identities) => all(identities, 'ServiceDigitalIdentity'))
    .flatMap(certificatesOf);
  return pointerOf({
    uri: all(pointer, 'TSLLocation')[0]?.text.trim(),
    signers,
    territory: about('SchemeTerritory'),
    type: about('TSLType'),
    mimeType: about('MimeType'),
  });
}

function certificatesOf(identity: ListElement): readonly string[] {
  return all(identity, 'DigitalId')
    .flatMap((id) => all(id, 'X509Certificate'))
    .map(({ text }) => text.replaceAll(/\s/g, ''));
}

/** SHA-256 of all that a list says except its dates, which its operator may change alone. */
export class TrustedListDigest {
  readonly #digest = createHash('sha256');
  /** Local names of the open elements. */
  readonly #path: string[] = [];
  /** Depth of the element that does not count, with all that is in it. */
  #skipped: number | undefined;

  /** @param children number of elements directly in it. */
  open({ namespace, name, attributes, text }: Omit<ListElement, 'children'>, children: number): void {
    const parent = this.#path.at(-1);
    const isInScheme = parent === 'SchemeInformation';
    // A list without an end is closed, which is no date.
    const isDate = name === 'ListIssueDateTime' || (name === 'NextUpdate' && children > 0);
    if (this.#skipped === undefined && isInScheme && isDate) this.#skipped = this.#path.length;
    this.#path.push(name);
    if (this.#skipped !== undefined) return;
    this.#digest.update(JSON.stringify([namespace, name, [...attributes].sort(), text, children]));
  }

  close(): void {
    this.#path.pop();
    if (this.#skipped === this.#path.length) this.#skipped = undefined;
  }

  /** @returns base64url. */
  value(): string {
    return this.#digest.digest('base64url');
  }
}

function parseNumber(text: string): number {
  const number = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw new TrustListRefusal('malformed', 'TSLSequenceNumber');
  return number;
}

function parseProvider({
  information: parts,
  services,
}: {
  readonly information: readonly ListElement[];
  readonly services: readonly TrustedService[];
}): TrustedEntity {
  const [information, ...more] = parts;
  if (information === undefined || more.length > 0) throw new TrustListRefusal('malformed', 'TSPInformation');
  const names = textsOf(information, 'TSPName');
  const [name] = names;
  if (name === undefined) throw new TrustListRefusal('malformed', 'TSPName');
  if (services.length > 0 && hasUnknownCritical(information, 'TSPInformationExtensions'))
    throw new TrustListRefusal('critical_extension', 'TSPInformationExtensions');
  const country = all(information, 'TSPAddress')
    .flatMap((address) => all(address, 'PostalAddresses'))
    .flatMap((addresses) => all(addresses, 'PostalAddress'))
    .flatMap((address) => all(address, 'CountryName'))[0]?.text;
  const identity = [names, textsOf(information, 'TSPTradeName'), country ?? null];
  return { id: hash('sha256', JSON.stringify(identity), 'base64url'), name, country, services };
}

function textsOf(information: ListElement, name: string): readonly string[] {
  return all(information, name)
    .flatMap((list) => all(list, 'Name'))
    .map(({ text }) => text);
}

/** @returns nothing for a service whose state has not begun, and one with an extension that has to be understood. */
function parseService(service: ListElement, now: Date): readonly TrustedService[] {
  const information = one(service, 'ServiceInformation');
  const type = one(information, 'ServiceTypeIdentifier').text.trim();
  // Most of a national list is about other things than attestations.
  if (!isSelectable(type)) return [];
  const since = parseDateTime(one(information, 'StatusStartingTime').text, 'StatusStartingTime');
  if (since.getTime() > now.getTime() + SKEW_SECONDS * 1000 || isBeyondUs(information)) return [];
  const certificates = all(information, 'ServiceDigitalIdentity').flatMap(certificatesOf);
  const history = all(service, 'ServiceHistory')
    .flatMap((list) => all(list, 'ServiceHistoryInstance'))
    .slice(0, MAX_STATES)
    .map(parseFormerState);
  return [
    {
      type,
      // Mandatory here: a service without would not be approved.
      status: one(information, 'ServiceStatus').text,
      certificates,
      since,
      ...(history.length > 0 && { history }),
    },
  ];
}

/** Section 5.6: the key stays the same, so the certificates are those of the present. */
function parseFormerState(instance: ListElement): FormerState {
  return {
    type: one(instance, 'ServiceTypeIdentifier').text.trim(),
    // One that says more than is understood vouches for nothing.
    status: isBeyondUs(instance) ? '' : one(instance, 'ServiceStatus').text.trim(),
    since: parseDateTime(one(instance, 'StatusStartingTime').text, 'StatusStartingTime'),
  };
}

function isBeyondUs(information: ListElement): boolean {
  return hasUnknownCritical(information, 'ServiceInformationExtensions');
}

/** Whether a list of extensions has a critical one that is not understood. One without an element says nothing that is. */
function hasUnknownCritical(parent: ListElement, name: string): boolean {
  const extensions = all(parent, name).flatMap((list) => all(list, 'Extension'));
  return extensions.some(
    ({ attributes, children }) =>
      !NOT_CRITICAL.has((attributes.get('Critical') ?? '').trim()) &&
      !(children.length > 0 && children.every((child) => UNDERSTOOD.has(child.name))),
  );
}

function all(parent: ListElement, name: string): readonly ListElement[] {
  return parent.children.filter((child) => child.namespace === TSL && child.name === name);
}

function one(parent: ListElement, name: string): ListElement {
  const [element, ...more] = all(parent, name);
  if (element === undefined || more.length > 0) throw new TrustListRefusal('malformed', name);
  return element;
}
