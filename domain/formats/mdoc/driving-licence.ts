import { Refusal } from '../../shared/refusal.ts';
import { type Place, subjectPlace } from '../der/place.ts';

export const DRIVING_LICENCE = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';

/** Whether what ISO/IEC 18013-5 says of those who sign driving licences is demanded of them. */
export const MDL_PROFILES = ['iso-18013-5', 'none'] as const;
export type MdlProfile = (typeof MDL_PROFILES)[number];

type NameSpaces = Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;

/** Certificates, DER in standard base64. */
type Signer = {
  readonly certificate: string;
  /** Who certified it; absent for one that is trusted by itself. */
  readonly authority?: string | undefined;
};

/**
 * Compares where a licence says that it comes from with its signer, and the signer with its authority (ISO/IEC 18013-5 sections 9.3.1 and
 * B.1.4): an authority speaks for its own country alone. Where neither names a country there is nothing to compare.
 * @throws Refusal `issuer_country_mismatch`; without the values of elements.
 */
export function assertIssuingPlace({ certificate, authority }: Signer, elements: NameSpaces): void {
  const signer = subjectPlace(certificate);
  const above = authority === undefined ? undefined : subjectPlace(authority);
  if (above !== undefined && signer.countries.join() !== above.countries.join()) {
    throw mismatch(`the signer is of ${printed(signer.countries)}, its authority of ${printed(above.countries)}`);
  }
  if (above !== undefined && areOther(signer.states, above.states)) {
    throw mismatch(`the signer is of ${printed(signer.states)}, its authority of ${printed(above.states)}`);
  }
  const states = signer.states.length > 0 ? signer.states : (above?.states ?? []);
  const fault = findIssuingPlaceProblem({ countries: signer.countries, states }, elements);
  if (fault !== undefined) throw mismatch(fault);
}

/**
 * What a licence says of its place against that of its signer.
 * @returns what is wrong, without the values of elements.
 */
export function findIssuingPlaceProblem({ countries, states }: Place, elements: NameSpaces): string | undefined {
  const { issuing_country: country, issuing_jurisdiction: jurisdiction } = elements[NAMESPACE] ?? {};
  if (countries.length > 1) return `the signer is of ${printed(countries)}`;
  if (country !== undefined && countries.length > 0 && !isOneOf(country, countries)) {
    return `issuing_country is another than ${printed(countries)} of the signer`;
  }
  // Certificates have the code of ISO 3166-2 with or without the country before it.
  const codes = states.flatMap((state) => [state, ...countries.map((code) => `${code}-${state}`)]);
  if (jurisdiction !== undefined && states.length > 0 && !isOneOf(jurisdiction, codes)) {
    return `issuing_jurisdiction is another than ${printed(states)} of the signer`;
  }
  return undefined;
}

function areOther(own: readonly string[], above: readonly string[]): boolean {
  return own.length > 0 && above.length > 0 && own.join() !== above.join();
}

function isOneOf(value: unknown, known: readonly string[]): boolean {
  return typeof value === 'string' && known.includes(value.toUpperCase());
}

function printed(names: readonly string[]): string {
  return names.length === 0 ? 'no country' : names.join(' and ');
}

function mismatch(detail: string): Refusal {
  return new Refusal('issuer_country_mismatch', detail);
}
