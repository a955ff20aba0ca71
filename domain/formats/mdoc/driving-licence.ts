import { Refusal } from '../../shared/refusal.ts';
import { type SubjectLocation, subjectLocation } from '../der/subject-location.ts';

export const DRIVING_LICENCE = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';

/** Profiles for the signers of driving licences; `iso-18013-5` enforces the requirements of the standard. */
export const MDL_PROFILES = ['iso-18013-5', 'none'] as const;
export type MdlProfile = (typeof MDL_PROFILES)[number];

type LicenceElements = Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;

type Signer = {
  readonly certificate: string;
  /** The issuer of the certificate; absent for a trust anchor. */
  readonly authority?: string | undefined;
};

/**
 * Compares the location in a licence with its signer's, and the signer's with its authority's (ISO/IEC 18013-5 sections 9.3.1 and B.1.4):
 * an authority is responsible for its own country only. Without countries there is nothing to compare.
 * @throws Refusal `issuer_country_mismatch`; without the values of elements.
 */
export function assertIssuingLocation({ certificate, authority }: Signer, elements: LicenceElements): void {
  const signerLocation = subjectLocation(certificate);
  const authorityLocation = authority === undefined ? undefined : subjectLocation(authority);
  if (authorityLocation !== undefined && signerLocation.countries.join() !== authorityLocation.countries.join()) {
    throw mismatch(
      `the country of the signer is ${joinNames(signerLocation.countries)}, that of its authority ${joinNames(authorityLocation.countries)}`,
    );
  }
  if (authorityLocation !== undefined && isDifferent(signerLocation.states, authorityLocation.states)) {
    throw mismatch(
      `the state of the signer is ${joinNames(signerLocation.states)}, that of its authority ${joinNames(authorityLocation.states)}`,
    );
  }
  const states = signerLocation.states.length > 0 ? signerLocation.states : (authorityLocation?.states ?? []);
  const fault = findIssuingLocationProblem({ countries: signerLocation.countries, states }, elements);
  if (fault !== undefined) throw mismatch(fault);
}

/**
 * Compares the location in a licence with its signer's.
 * @returns the mismatch, without the values of elements.
 */
export function findIssuingLocationProblem({ countries, states }: SubjectLocation, elements: LicenceElements): string | undefined {
  const { issuing_country: country, issuing_jurisdiction: jurisdiction } = elements[NAMESPACE] ?? {};
  if (countries.length > 1) return `the country of the signer is ${joinNames(countries)}`;
  if (country !== undefined && countries.length > 0 && !isOneOf(country, countries)) {
    return `issuing_country differs from the country of the signer, ${joinNames(countries)}`;
  }
  // Certificates contain the ISO 3166-2 code with or without the country prefix.
  const codes = states.flatMap((state) => [state, ...countries.map((code) => `${code}-${state}`)]);
  if (jurisdiction !== undefined && states.length > 0 && !isOneOf(jurisdiction, codes)) {
    return `issuing_jurisdiction differs from the state of the signer, ${joinNames(states)}`;
  }
  return undefined;
}

function isDifferent(signerStates: readonly string[], authorityLocation: readonly string[]): boolean {
  return signerStates.length > 0 && authorityLocation.length > 0 && signerStates.join() !== authorityLocation.join();
}

function isOneOf(value: unknown, accepted: readonly string[]): boolean {
  return typeof value === 'string' && accepted.includes(value.toUpperCase());
}

function joinNames(names: readonly string[]): string {
  return names.length === 0 ? 'no country' : names.join(' and ');
}

function mismatch(detail: string): Refusal {
  return new Refusal('issuer_country_mismatch', detail);
}
