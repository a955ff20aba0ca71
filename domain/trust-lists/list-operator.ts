import { subjectNames } from '../keys/certificate-subject.ts';
import { Failure, type FieldError, invalidInput } from '../shared/failure.ts';
import type { Finding } from '../shared/finding.ts';
import { isJsonObject, type JsonObject } from '../shared/json.ts';
import { organizationName } from '../tenants/organization.ts';
import { type ListOwner, ownerAddress } from './entity-address.ts';
import type { TrustListConfiguration } from './list-configuration.ts';
import { profileOf } from './list-profiles.ts';
import { documentOf, type PublishedList } from './published-list.ts';
import type { SchemeInformation } from './scheme-information.ts';

const PATH = 'data.LoTE.ListAndSchemeInformation';
const EUROPE = 'EU';

/** The operator's address: configured, otherwise the tenant's if it is complete. */
export function operatorAddress(
  { SchemeOperatorAddress }: SchemeInformation,
  owner: ListOwner,
): SchemeInformation['SchemeOperatorAddress'] {
  if (SchemeOperatorAddress !== undefined) return SchemeOperatorAddress;
  const { streetAddress, locality, stateOrProvince, postalCode, country } = ownerAddress(owner);
  if (streetAddress === undefined || country === undefined || owner.contact === null) return undefined;
  const lang = 'en';
  const optionalProperties = {
    ...(locality !== undefined && { Locality: locality }),
    ...(stateOrProvince !== undefined && { StateOrProvince: stateOrProvince }),
    ...(postalCode !== undefined && { PostalCode: postalCode }),
  };
  return {
    SchemeOperatorPostalAddress: [{ lang, StreetAddress: streetAddress, ...optionalProperties, Country: country }],
    SchemeOperatorElectronicAddress: [{ lang, uriValue: owner.contact }],
  };
}

/**
 * Asserts that a list of a European type contains all properties that only the operator knows (TS 119 602 table 1 and annexes D to H).
 * @throws Failure `invalid_input` with all missing properties.
 */
export function assertSchemeComplete({ data }: TrustListConfiguration, owner: ListOwner): void {
  const scheme = data?.LoTE?.ListAndSchemeInformation ?? {};
  const { fixed } = profileOf(scheme.LoTEType);
  if (fixed === undefined) return;
  const completeScheme = { ...scheme, SchemeOperatorAddress: operatorAddress(scheme, owner) };
  const missingMembers = (['SchemeOperatorAddress', 'SchemeName', 'SchemeInformationURI', 'PolicyOrLegalNotice'] as const).filter(
    (member) => completeScheme[member] === undefined,
  );
  const errors = missingMembers.map((member): FieldError => ({ path: `${PATH}.${member}`, message: 'missing' }));
  const { HistoricalInformationPeriod: period } = scheme;
  if (period !== undefined && period !== fixed.HistoricalInformationPeriod) {
    const message = `lists of this type have ${fixed.HistoricalInformationPeriod ?? 'none'}`;
    errors.push({ path: `${PATH}.HistoricalInformationPeriod`, message });
  }
  if (errors.length === 0) return;
  const problemText = errors.map(({ path, message }) => `${path.slice(PATH.length + 1)} (${message})`).join(', ');
  throw new Failure('invalid_input', { message: `A list of the type ${scheme.LoTEType} cannot be published: ${problemText}.`, errors });
}

/**
 * Verifiers reject a list whose signer has another name than its operator (TS 119 602 section 6.8).
 * @param certificate of the signer, DER in standard base64.
 * @throws Failure `invalid_input` for a list of a European type.
 */
export function assertSignedByOperator(document: JsonObject, certificate: string): void {
  const scheme = schemeOf(document);
  const fault = findSignerProblem(scheme, certificate);
  const type = scheme['LoTEType'];
  if (fault === undefined || typeof type !== 'string' || profileOf(type).fixed === undefined) return;
  throw invalidInput('keyChainId', `${fault}, and readers of the type ${type} reject that; ${CHANGE}.`);
}

const CHANGE =
  'name a key chain for trustList with the organization of the operator and the SchemeTerritory as country, or change the operator or the territory';

/** The same check as a warning for lists of other types, which some verifiers accept. */
export function findSignerProblems(list: PublishedList): Finding[] {
  const certificate = signerOf(list);
  if (certificate === undefined) return [];
  const scheme = schemeOf(documentOf(list));
  const fault = findSignerProblem(scheme, certificate) ?? findTerritoryProblem(scheme, certificate);
  if (fault === undefined) return [];
  const [rule, member, concerns] = ['TS 119 602 section 6.8', 'keyChainId', 'readers of the list'] as const;
  return [{ rule, member, concerns, message: fault, change: CHANGE }];
}

function findSignerProblem(scheme: JsonObject, certificate: string): string | undefined {
  const { organization, country } = subjectNames(certificate);
  const operators = valuesOf(scheme['SchemeOperatorName'], 'value').map((name) => organizationName({ organization: null, name }));
  if (organization === undefined || !operators.includes(organization)) {
    const signer = organization === undefined ? 'no organization' : `the organization ${organization}`;
    return `the certificate of its signer names ${signer}, the list ${operators.join(', ')} as its operator`;
  }
  const countries = countriesOf(scheme);
  if (countries.length === 0 || (country !== undefined && countries.includes(country))) return undefined;
  return `the certificate of its signer names ${country ?? 'no country'}, its operator is of ${countries.join(', ')}`;
}

/** The certificate may have the country of the operator's address in a list of `EU`, but some verifiers compare it with the territory. */
function findTerritoryProblem({ SchemeTerritory: territory }: JsonObject, certificate: string): string | undefined {
  const { country } = subjectNames(certificate);
  if (typeof territory !== 'string' || country === territory) return undefined;
  return `the certificate of its signer names ${country ?? 'no country'}, the list ${territory} as its SchemeTerritory`;
}

/** Countries of an operator; `EU` alone is no location. */
function countriesOf(scheme: JsonObject): readonly string[] {
  const { SchemeTerritory: territory, SchemeOperatorAddress: address } = scheme;
  if (typeof territory !== 'string') return [];
  if (territory !== EUROPE) return [territory];
  const postal = isJsonObject(address) ? address['SchemeOperatorPostalAddress'] : undefined;
  return [...new Set([...valuesOf(postal, 'Country'), EUROPE])];
}

function valuesOf(entries: unknown, member: string): readonly string[] {
  const list: readonly unknown[] = Array.isArray(entries) ? entries : [];
  return list.flatMap((entry) => {
    const value = isJsonObject(entry) ? entry[member] : undefined;
    return typeof value === 'string' ? [value] : [];
  });
}

function schemeOf(document: JsonObject): JsonObject {
  const list = document['LoTE'];
  const scheme = isJsonObject(list) ? list['ListAndSchemeInformation'] : undefined;
  return isJsonObject(scheme) ? scheme : {};
}

/** The signer's certificate in a list version, DER in standard base64. */
function signerOf({ jwt }: PublishedList): string | undefined {
  const [header = ''] = jwt.split('.', 1);
  const { x5c } = JSON.parse(Buffer.from(header, 'base64url').toString('utf8')) as { x5c?: string[] };
  return x5c?.[0];
}
