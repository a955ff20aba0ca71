/** A claim as a rulebook has it; `required` where each document of the kind has it. */
export type KnownClaim = {
  readonly path: readonly string[];
  readonly name: string;
  readonly required?: boolean;
  /** Of a made-up person, for offers that try it. */
  readonly example: unknown;
  /** Whether it alone tells who somebody is. */
  readonly identifies?: boolean;
};

export type KnownKind = {
  readonly id: string;
  readonly title: string;
  readonly source: string;
  readonly format: 'dc+sd-jwt' | 'mso_mdoc';
  /** `vct`, or the document type. */
  readonly type: string;
  readonly namespace?: string;
  readonly claims: readonly KnownClaim[];
};

const MDL = 'org.iso.18013.5.1';
const PID = 'eu.europa.ec.eudi.pid.1';
const AGE = 'eu.europa.ec.av.1';

type Row = readonly [path: string, name: string, example: unknown, marks?: string];

/** @param rows in `marks` R is required, I identifies. */
function claims(rows: readonly Row[], namespace?: string): readonly KnownClaim[] {
  return rows.map(([path, name, example, marks = '']) => ({
    path: [...(namespace === undefined ? [] : [namespace]), ...path.split('/')],
    name,
    example,
    required: marks.includes('R'),
    identifies: marks.includes('I'),
  }));
}

// biome-ignore format: a table
const PID_SD_JWT: readonly Row[] = [
  ['family_name', 'Family name', 'Lovelace', 'RI'],
  ['given_name', 'Given names', 'Ada', 'RI'],
  ['birthdate', 'Date of birth', '1985-12-10', 'RI'],
  ['place_of_birth', 'Place of birth', { locality: 'London', country: 'GB' }, 'RI'],
  ['nationalities', 'Nationalities', ['DE'], 'R'],
  ['date_of_expiry', 'Expires on', '2031-01-01', 'R'],
  ['issuing_authority', 'Issued by', 'Ministry of Examples', 'R'],
  ['issuing_country', 'Country of issue', 'DE', 'R'],
  ['address/street_address', 'Street', 'Example Street', 'I'],
  ['address/house_number', 'House number', '1', 'I'],
  ['address/postal_code', 'Postal code', '10115'],
  ['address/locality', 'Town', 'Berlin'],
  ['address/country', 'Country', 'DE'],
  ['personal_administrative_number', 'Personal number', 'EX-1815-12-10', 'I'],
  ['document_number', 'Document number', 'EX-1234567', 'I'],
  ['email', 'E-mail', 'ada@example.com', 'I'],
];

// biome-ignore format: a table
const PID_MDOC: readonly Row[] = [
  ['family_name', 'Family name', 'Lovelace', 'RI'],
  ['given_name', 'Given names', 'Ada', 'RI'],
  ['birth_date', 'Date of birth', '1985-12-10', 'RI'],
  ['place_of_birth', 'Place of birth', { locality: 'London', country: 'GB' }, 'RI'],
  ['nationality', 'Nationalities', ['DE'], 'R'],
  ['expiry_date', 'Expires on', '2031-01-01', 'R'],
  ['issuing_authority', 'Issued by', 'Ministry of Examples', 'R'],
  ['issuing_country', 'Country of issue', 'DE', 'R'],
  ['resident_address', 'Address', 'Example Street 1, Berlin', 'I'],
  ['personal_administrative_number', 'Personal number', 'EX-1815-12-10', 'I'],
];

// biome-ignore format: a table
const LICENCE: readonly Row[] = [
  ['family_name', 'Family name', 'Lovelace', 'RI'],
  ['given_name', 'Given names', 'Ada', 'RI'],
  ['birth_date', 'Date of birth', '1985-12-10', 'RI'],
  ['issue_date', 'Issued on', '2026-01-01', 'R'],
  ['expiry_date', 'Expires on', '2036-01-01', 'R'],
  ['issuing_country', 'Country of issue', 'GB', 'R'],
  ['issuing_authority', 'Issued by', 'Ministry of Examples', 'R'],
  ['document_number', 'Licence number', 'EX-1234567', 'RI'],
  ['portrait', 'Portrait', 'bm90IGEgcGljdHVyZQ', 'RI'],
  ['driving_privileges', 'May drive', [{ vehicle_category_code: 'B', issue_date: '2010-01-01' }], 'R'],
  ['un_distinguishing_sign', 'Distinguishing sign', 'UK', 'R'],
  ['age_over_18', '18 or older', true],
];

// biome-ignore format: a table
const DIPLOMA: readonly Row[] = [
  ['given_name', 'Given names', 'Ada', 'RI'],
  ['family_name', 'Family name', 'Lovelace', 'RI'],
  ['degree', 'Degree', 'MSc Mathematics', 'R'],
  ['awarding_body', 'Awarded by', 'University of Examples', 'R'],
  ['graduated_on', 'Graduated on', '2026-06-30'],
  ['grade', 'Grade', '1.0'],
];

/** Kinds that many know. What a law demands of one is for its rulebook to say; these are the claims to begin with. */
export const CATALOGUE: readonly KnownKind[] = [
  {
    id: 'pid',
    title: 'Person identification data (SD-JWT VC)',
    source: 'PID Rulebook of the EUDI Wallet',
    format: 'dc+sd-jwt',
    type: 'urn:eudi:pid:1',
    claims: claims(PID_SD_JWT),
  },
  {
    id: 'pid-mdoc',
    title: 'Person identification data (mdoc)',
    source: 'PID Rulebook of the EUDI Wallet',
    format: 'mso_mdoc',
    type: PID,
    namespace: PID,
    claims: claims(PID_MDOC, PID),
  },
  {
    id: 'mdl',
    title: 'Mobile driving licence (mdoc)',
    source: 'ISO/IEC 18013-5',
    format: 'mso_mdoc',
    type: `${MDL}.mDL`,
    namespace: MDL,
    claims: claims(LICENCE, MDL),
  },
  {
    id: 'diploma',
    title: 'Diploma (SD-JWT VC)',
    source: 'an example, of no rulebook',
    format: 'dc+sd-jwt',
    type: 'urn:example:diploma:1',
    claims: claims(DIPLOMA),
  },
  {
    id: 'age',
    title: 'Proof of age (mdoc)',
    source: 'EU age verification profile',
    format: 'mso_mdoc',
    type: AGE,
    namespace: AGE,
    claims: claims([['age_over_18', '18 or older', true, 'R']], AGE),
  },
];
