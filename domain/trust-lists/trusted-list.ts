import { hash } from 'node:crypto';
import type { TrustedEntity, TrustedService, TrustList } from './lote.ts';
import { readDateTime, SKEW_SECONDS } from './signed-list.ts';
import { TrustListRefusal } from './trust-list-refusal.ts';

const TSL = 'http://uri.etsi.org/02231/v2#';

/** How a trusted list begins (ETSI TS 119 612 annex B). */
export const TRUSTED_LIST_ROOT = { namespace: TSL, name: 'TrustServiceStatusList' } as const;

/** What was signed of a list, piece by piece. */
export type ListElement = {
  readonly namespace: string;
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly ListElement[];
  readonly text: string;
};

/** The rules of parsing that this reader follows (section 5.3.1). */
const VERSIONS = ['5', '6'];
const LIST_OF_LISTS = /listofthelists$/i;
/** Extensions that may be critical: they say more about a service, and nothing against it (section 5.5.9.4). */
const UNDERSTOOD = new Set(['AdditionalServiceInformation']);

/**
 * Reads a verified list in XML (ETSI TS 119 612). The states of services in the past are not read.
 * @throws TrustListRefusal `malformed`, `version`, `from_the_future`, `outdated`.
 */
export function readTrustedList(document: ListElement, now: Date): TrustList {
  const scheme = one(document, 'SchemeInformation');
  if (!VERSIONS.includes(one(scheme, 'TSLVersionIdentifier').text)) throw new TrustListRefusal('version');
  if (LIST_OF_LISTS.test(one(scheme, 'TSLType').text)) {
    throw new TrustListRefusal(
      'malformed',
      'it only points to other lists, which are not followed; name those',
    );
  }
  const issuedAt = readDateTime(one(scheme, 'ListIssueDateTime').text, 'ListIssueDateTime');
  if (issuedAt.getTime() > now.getTime() + SKEW_SECONDS * 1000) {
    throw new TrustListRefusal('from_the_future', 'ListIssueDateTime');
  }
  const sequenceNumber = readNumber(one(scheme, 'TSLSequenceNumber').text);
  // Section 5.3.15: an empty one closes the list
  const [end] = all(one(scheme, 'NextUpdate'), 'dateTime');
  if (end === undefined) return { sequenceNumber, issuedAt, nextUpdate: null, entities: [] };
  const nextUpdate = readDateTime(end.text, 'NextUpdate');
  if (nextUpdate <= now) throw new TrustListRefusal('outdated', 'NextUpdate has passed');
  const providers = all(document, 'TrustServiceProviderList').flatMap((list) =>
    all(list, 'TrustServiceProvider'),
  );
  return { sequenceNumber, issuedAt, nextUpdate, entities: providers.map((each) => readProvider(each, now)) };
}

function readNumber(text: string): number {
  const number = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw new TrustListRefusal('malformed', 'TSLSequenceNumber');
  return number;
}

function readProvider(provider: ListElement, now: Date): TrustedEntity {
  const information = one(provider, 'TSPInformation');
  const names = textsOf(information, 'TSPName');
  const [name] = names;
  if (name === undefined) throw new TrustListRefusal('malformed', 'TSPName');
  const country = all(information, 'TSPAddress')
    .flatMap((address) => all(address, 'PostalAddresses'))
    .flatMap((addresses) => all(addresses, 'PostalAddress'))
    .flatMap((address) => all(address, 'CountryName'))[0]?.text;
  const identity = [names, textsOf(information, 'TSPTradeName'), country ?? null];
  const services = all(provider, 'TSPServices').flatMap((list) => all(list, 'TSPService'));
  return {
    id: hash('sha256', JSON.stringify(identity), 'base64url'),
    name,
    country,
    services: services.flatMap((service) => readService(one(service, 'ServiceInformation'), now)),
  };
}

function textsOf(information: ListElement, name: string): readonly string[] {
  return all(information, name)
    .flatMap((list) => all(list, 'Name'))
    .map(({ text }) => text);
}

/** @returns nothing for a service whose state has not begun, and one with an extension that has to be understood. */
function readService(information: ListElement, now: Date): readonly TrustedService[] {
  const since = readDateTime(one(information, 'StatusStartingTime').text, 'StatusStartingTime');
  if (since.getTime() > now.getTime() + SKEW_SECONDS * 1000 || isBeyondUs(information)) return [];
  const certificates = all(information, 'ServiceDigitalIdentity')
    .flatMap((identity) => all(identity, 'DigitalId'))
    .flatMap((id) => all(id, 'X509Certificate'))
    .map(({ text }) => text.replaceAll(/\s/g, ''));
  return [
    {
      type: one(information, 'ServiceTypeIdentifier').text,
      // Mandatory here: a service without would not be approved.
      status: one(information, 'ServiceStatus').text,
      certificates,
    },
  ];
}

function isBeyondUs(information: ListElement): boolean {
  const extensions = all(information, 'ServiceInformationExtensions').flatMap((list) =>
    all(list, 'Extension'),
  );
  return extensions.some(
    ({ attributes, children }) =>
      ['true', '1'].includes(attributes.get('Critical') ?? '') &&
      !children.every(({ name }) => UNDERSTOOD.has(name)),
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
