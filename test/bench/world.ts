import type { JsonWebKey } from 'node:crypto';
import type { PresentationScenario, ScenarioName } from './scenarios.ts';

export const DATABASES = ['postgres', 'sqlite'] as const;
export type DatabaseKind = (typeof DATABASES)[number];

export const FORMATS = ['dc+sd-jwt', 'mso_mdoc'] as const;
export type Format = (typeof FORMATS)[number];

/** A presentation configuration and the format that each of its queries asks for. */
export type Asking = { readonly requestId: string; readonly queries: readonly { readonly id: string; readonly format: Format }[] };

/** Addresses and ids of the set-up for the wallets. */
export type World = {
  readonly origin: string;
  readonly tenantId: string;
  /** Number of concurrent wallets, each with its own connection. */
  readonly wallets: number;
  /** Administrative access token of the tenant's client. */
  readonly token: string;
  readonly plainId: string;
  readonly mdocId: string;
  /** Credential configurations with a status. */
  readonly statusIds: Readonly<Record<Format, string>>;
  readonly asking: Readonly<Record<PresentationScenario, Asking>>;
  /** The wallet provider. */
  readonly provider: {
    readonly clientId: string;
    /** DER in standard base64. */
    readonly certificate: string;
    readonly privateJwk: JsonWebKey;
  };
};

/** One that nothing is issued into. */
export type StatusList = { readonly id: string; readonly uri: string };

/** The session of a credential that can be revoked. */
export const revocableSession = (listId: string, number: number | string) => `revocable-${listId}-${number}`;

/** Messages from the bench to the process of the wallets. */
export type Order =
  | { readonly kind: 'prepare'; readonly world: World }
  | {
      readonly kind: 'run';
      readonly scenario: ScenarioName;
      readonly warmUpMs: number;
      readonly measuredMs: number;
      readonly windows: number;
    }
  /** Issues until there are so many credentials of the format with a status. */
  | { readonly kind: 'collect'; readonly format: Format; readonly count: number }
  /** There are so many credentials to revoke in a list, by sessions that are numbered. */
  | { readonly kind: 'revocable'; readonly list: StatusList; readonly count: number }
  /** Presents so many times, both formats in turn; a wrong answer is the end. */
  | { readonly kind: 'present'; readonly count: number };

export type Measured = {
  readonly flows: number;
  readonly seconds: number;
  /** Milliseconds per flow. */
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly errors: number;
  /** The first distinct errors and how often each came. */
  readonly messages: readonly (readonly [message: string, count: number])[];
};

/**
 * Messages from the process of the wallets to the bench. A mark is sent when the measured time begins, and at the end of
 * each window.
 */
export type Report =
  | { readonly kind: 'done' }
  | { readonly kind: 'mark'; readonly flows: number }
  | { readonly kind: 'measured'; readonly measured: Measured }
  | { readonly kind: 'broken'; readonly message: string };

export const WALLETS = 8;

/** Twelve top-level claims with sixteen values that can be disclosed one by one. */
export const CLAIMS = {
  given_name: 'Erika',
  family_name: 'Mustermann',
  birthdate: '1964-08-12',
  birth_family_name: 'Gabler',
  sex: 2,
  email: 'erika.mustermann@example.org',
  phone_number: '+49301234567',
  personal_administrative_number: '1234567890',
  issuing_authority: 'Bundesdruckerei',
  issuing_country: 'DE',
  nationalities: ['DE', 'FR'],
  address: { street_address: 'Heidestraße 17', locality: 'Köln', postal_code: '51147', country: 'DE' },
} as const;

export const DISCLOSURE_FRAME = {
  _sd: Object.keys(CLAIMS).filter((name) => name !== 'nationalities' && name !== 'address'),
  nationalities: { _sd: [0, 1] },
  address: { _sd: ['street_address', 'locality', 'postal_code', 'country'] },
};
export const DISCLOSURES = 16;

export const BATCH = 10;

export const LIST_CAPACITY = 100_000;

export const DOC_TYPE = 'eu.europa.ec.eudi.pid.1';

/** Sixteen elements of a person. */
export const ELEMENTS = {
  [DOC_TYPE]: {
    given_name: 'Erika',
    family_name: 'Mustermann',
    birth_date: '1964-08-12',
    age_over_18: true,
    age_in_years: 62,
    birth_family_name: 'Gabler',
    sex: 2,
    email_address: 'erika.mustermann@example.org',
    mobile_phone_number: '+49301234567',
    personal_administrative_number: '1234567890',
    issuing_authority: 'Bundesdruckerei',
    issuing_country: 'DE',
    nationality: ['DE', 'FR'],
    resident_street: 'Heidestraße 17',
    resident_city: 'Köln',
    resident_postal_code: '51147',
  },
};

/** The query of the verifier. */
export const ASKED: Readonly<Record<Format, readonly string[]>> = {
  'dc+sd-jwt': ['given_name', 'family_name', 'birthdate', 'issuing_country'],
  mso_mdoc: ['given_name', 'family_name', 'birth_date', 'issuing_country'],
};
