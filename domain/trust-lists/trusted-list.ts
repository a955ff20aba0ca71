import { createHash, hash } from 'node:crypto';
import { defined } from '../shared/defined.ts';
import { isListOfLists, type ListPointer, MAX_POINTERS, MAX_POINTERS_READ, toListPointer } from './list-pointer.ts';
import type { TrustedEntity, TrustedService, TrustList } from './lote.ts';
import { assertWithinBounds, MAX_CERTIFICATES } from './lote.ts';
import { isRelevantServiceType } from './select-certificates.ts';
import { MAX_STATES, type PreviousState } from './service-history.ts';
import { parseDateTime, SKEW_SECONDS } from './signed-list.ts';
import { TrustListRefusal } from './trust-list-refusal.ts';

const TSL = 'http://uri.etsi.org/02231/v2#';

/** Root element of a trusted list (ETSI TS 119 612 annex B). */
export const TRUSTED_LIST_ROOT = { namespace: TSL, name: 'TrustServiceStatusList' } as const;

/** An element of a signed list without comments and namespace declarations. */
export type ListElement = {
  readonly namespace: string;
  readonly name: string;
  /** Attributes without a prefix. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly ListElement[];
  /** Text of the element itself, trimmed. */
  readonly text: string;
};

/** The supported format versions (section 5.3.1). */
const VERSIONS = ['5', '6'];
/** Limit of relevant services, which bounds the time of a selection. */
const MAX_SERVICES = 5_000;
/** Supported critical extensions: they add information about a service and restrict nothing (section 5.5.9.4). */
const SUPPORTED_EXTENSIONS = new Set(['AdditionalServiceInformation']);
/** Values of `Critical` that mean false; its absence means false as well. */
const NOT_CRITICAL = new Set(['', 'false', '0']);

/**
 * Parses a verified XML list (ETSI TS 119 612) in parts, so that no tree of the whole list is needed. Only services that a purpose uses are
 * retained.
 */
export class TrustedListReader {
  readonly #now: Date;
  readonly #schemes: ListElement[] = [];
  readonly #providers: { readonly information: ListElement[]; readonly services: TrustedService[] }[] = [];
  #services = 0;
  #certificates = 0;
  /** A closed list is accepted although its providers are malformed. */
  #fault: unknown;

  constructor(now: Date) {
    this.#now = now;
  }

  /** True if the element at this path of local names below the root is passed to `addPart` as a whole. */
  static isPart(path: readonly string[]): boolean {
    return path.length === 1 ? path[0] === 'SchemeInformation' : PARTS.has(path.join('/'));
  }

  beginProvider(): void {
    this.#providers.push({ information: [], services: [] });
  }

  /** @param part at a path of `isPart`, in document order. */
  addPart(part: ListElement): void {
    if (part.name === 'SchemeInformation') this.#schemes.push(part);
    else if (part.name === 'TSPInformation') this.#providers.at(-1)?.information.push(part);
    else this.#addService(part);
  }

  #addService(part: ListElement): void {
    if (this.#fault !== undefined) return;
    try {
      const services = parseService(part, this.#now);
      this.#services += services.length;
      this.#certificates += services.reduce((sum, { certificates }) => sum + certificates.length, 0);
      if (this.#services > MAX_SERVICES) throw new TrustListRefusal('malformed', 'it has too many services');
      if (this.#certificates > MAX_CERTIFICATES) throw new TrustListRefusal('malformed', 'it has too many certificates');
      this.#providers.at(-1)?.services.push(...services);
    } catch (error) {
      this.#fault = error;
    }
  }

  /** @throws TrustListRefusal `malformed`, `version`, `critical_extension`, `from_the_future`, `outdated`. */
  finish(): TrustList {
    const [scheme, ...more] = this.#schemes;
    if (scheme === undefined || more.length > 0) throw new TrustListRefusal('malformed', 'SchemeInformation is missing or repeated');
    if (!VERSIONS.includes(requireChild(scheme, 'TSLVersionIdentifier').text)) throw new TrustListRefusal('version');
    if (hasUnknownCritical(scheme, 'SchemeExtensions'))
      throw new TrustListRefusal('critical_extension', 'SchemeExtensions contains an unsupported one');
    const issuedAt = parseDateTime(requireChild(scheme, 'ListIssueDateTime').text, 'ListIssueDateTime');
    if (issuedAt.getTime() > this.#now.getTime() + SKEW_SECONDS * 1000)
      throw new TrustListRefusal('from_the_future', 'ListIssueDateTime is in the future');
    const sequenceNumber = parseNumber(requireChild(scheme, 'TSLSequenceNumber').text);
    // Section 5.3.15: an empty element closes the list
    const [end] = childrenNamed(requireChild(scheme, 'NextUpdate'), 'dateTime');
    const territory = childrenNamed(scheme, 'SchemeTerritory')[0]?.text.trim();
    const isPointing = isListOfLists(requireChild(scheme, 'TSLType').text.trim());
    const header = { sequenceNumber, issuedAt, ...defined({ territory }), ...(isPointing && { isListOfLists: true as const }) };
    if (end === undefined) return assertWithinBounds({ ...header, nextUpdate: null, entities: [] });
    const nextUpdate = parseDateTime(end.text, 'NextUpdate');
    if (nextUpdate <= this.#now) throw new TrustListRefusal('outdated', 'NextUpdate has passed');
    const pointerElements = childrenNamed(scheme, 'PointersToOtherTSL').flatMap((list) => childrenNamed(list, 'OtherTSLPointer'));
    const pointers = pointerElements.slice(0, MAX_POINTERS_READ).flatMap(parsePointer);
    if (pointerElements.length > MAX_POINTERS_READ || pointers.length > MAX_POINTERS)
      throw new TrustListRefusal('malformed', 'it has too many pointers');
    const entities = this.#providers.map(parseProvider);
    if (this.#fault !== undefined) throw this.#fault;
    return assertWithinBounds({
      ...header,
      nextUpdate,
      entities: entities.filter(({ services }) => services.length > 0),
      ...(pointers.length > 0 && { pointers }),
    });
  }
}

const PROVIDER = 'TrustServiceProviderList/TrustServiceProvider';
const PARTS = new Set([`${PROVIDER}/TSPInformation`, `${PROVIDER}/TSPServices/TSPService`]);

/** True if the element at this path below the root is a provider. */
export function isProvider(path: readonly string[]): boolean {
  return path.length === 2 && path.join('/') === PROVIDER;
}

/** Section 5.3.13: each property of the other list is in a separate element. */
function parsePointer(pointer: ListElement): readonly ListPointer[] {
  const [additionalInformation] = childrenNamed(pointer, 'AdditionalInformation');
  const otherInformation =
    additionalInformation === undefined ? [] : childrenNamed(additionalInformation, 'OtherInformation').flatMap(({ children }) => children);
  const header = (name: string) => otherInformation.find((element) => element.name === name)?.text.trim();
  const signers = childrenNamed(pointer, 'ServiceDigitalIdentities')
    .flatMap((identities) => childrenNamed(identities, 'ServiceDigitalIdentity'))
    .flatMap(certificatesOf);
  return toListPointer({
    uri: childrenNamed(pointer, 'TSLLocation')[0]?.text.trim(),
    signers,
    territory: header('SchemeTerritory'),
    type: header('TSLType'),
    mimeType: header('MimeType'),
  });
}

function certificatesOf(identity: ListElement): readonly string[] {
  return childrenNamed(identity, 'DigitalId')
    .flatMap((id) => childrenNamed(id, 'X509Certificate'))
    .map(({ text }) => text.replaceAll(/\s/g, ''));
}

/** SHA-256 of a list's content without dates, which its operator may change alone. */
export class TrustedListDigest {
  readonly #digest = createHash('sha256');
  /** Local names of the open elements. */
  readonly #path: string[] = [];
  /** Depth of the element that is skipped with its content. */
  #skipped: number | undefined;

  /** @param children number of direct child elements. */
  open({ namespace, name, attributes, text }: Omit<ListElement, 'children'>, children: number): void {
    const parent = this.#path.at(-1);
    const isInScheme = parent === 'SchemeInformation';
    // A list without an end is closed; this is content, not a date.
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
  if (!Number.isSafeInteger(number))
    throw new TrustListRefusal('malformed', `TSLSequenceNumber is not an integer from 1 to ${Number.MAX_SAFE_INTEGER}`);
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
  if (information === undefined || more.length > 0) throw new TrustListRefusal('malformed', 'TSPInformation is missing or repeated');
  const names = textsOf(information, 'TSPName');
  const [name] = names;
  if (name === undefined) throw new TrustListRefusal('malformed', 'TSPName is missing');
  if (services.length > 0 && hasUnknownCritical(information, 'TSPInformationExtensions'))
    throw new TrustListRefusal('critical_extension', 'TSPInformationExtensions contains an unsupported one');
  const country = childrenNamed(information, 'TSPAddress')
    .flatMap((address) => childrenNamed(address, 'PostalAddresses'))
    .flatMap((addresses) => childrenNamed(addresses, 'PostalAddress'))
    .flatMap((address) => childrenNamed(address, 'CountryName'))[0]?.text;
  const identity = [names, textsOf(information, 'TSPTradeName'), country ?? null];
  return { id: hash('sha256', JSON.stringify(identity), 'base64url'), name, country, services };
}

function textsOf(information: ListElement, name: string): readonly string[] {
  return childrenNamed(information, name)
    .flatMap((list) => childrenNamed(list, 'Name'))
    .map(({ text }) => text);
}

/** @returns an empty list for a service whose state has not begun, or with an unsupported critical extension. */
function parseService(service: ListElement, now: Date): readonly TrustedService[] {
  const information = requireChild(service, 'ServiceInformation');
  const type = requireChild(information, 'ServiceTypeIdentifier').text.trim();
  // Most services of a national list do not concern attestations.
  if (!isRelevantServiceType(type)) return [];
  const statusStart = parseDateTime(requireChild(information, 'StatusStartingTime').text, 'StatusStartingTime');
  if (statusStart.getTime() > now.getTime() + SKEW_SECONDS * 1000 || hasUnsupportedExtension(information)) return [];
  const certificates = childrenNamed(information, 'ServiceDigitalIdentity').flatMap(certificatesOf);
  const history = childrenNamed(service, 'ServiceHistory')
    .flatMap((list) => childrenNamed(list, 'ServiceHistoryInstance'))
    .slice(0, MAX_STATES)
    .map(parseFormerState);
  return [
    {
      type,
      // Mandatory here: a service without status is not approved.
      status: requireChild(information, 'ServiceStatus').text,
      certificates,
      since: statusStart,
      ...(history.length > 0 && { history }),
    },
  ];
}

/** Section 5.6: the key stays the same, so the current certificates apply. */
function parseFormerState(instance: ListElement): PreviousState {
  return {
    type: requireChild(instance, 'ServiceTypeIdentifier').text.trim(),
    // A state with an unsupported critical extension is not trusted.
    status: hasUnsupportedExtension(instance) ? '' : requireChild(instance, 'ServiceStatus').text.trim(),
    since: parseDateTime(requireChild(instance, 'StatusStartingTime').text, 'StatusStartingTime'),
  };
}

function hasUnsupportedExtension(information: ListElement): boolean {
  return hasUnknownCritical(information, 'ServiceInformationExtensions');
}

/** True if a critical extension is not supported. An extension without elements counts as unsupported. */
function hasUnknownCritical(parent: ListElement, name: string): boolean {
  const extensions = childrenNamed(parent, name).flatMap((list) => childrenNamed(list, 'Extension'));
  return extensions.some(
    ({ attributes, children }) =>
      !NOT_CRITICAL.has((attributes.get('Critical') ?? '').trim()) &&
      !(children.length > 0 && children.every((child) => SUPPORTED_EXTENSIONS.has(child.name))),
  );
}

function childrenNamed(parent: ListElement, name: string): readonly ListElement[] {
  return parent.children.filter((child) => child.namespace === TSL && child.name === name);
}

function requireChild(parent: ListElement, name: string): ListElement {
  const [element, ...more] = childrenNamed(parent, name);
  if (element === undefined || more.length > 0) throw new TrustListRefusal('malformed', `${name} is missing or repeated`);
  return element;
}
