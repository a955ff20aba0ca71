/** A claim as a rulebook has it; `required` where each document of the kind has it. */
export type KnownClaim = {
  readonly path: readonly string[];
  readonly name: string;
  readonly required?: boolean;
  readonly example: unknown;
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

/**
 * PID Rulebook 1.7 (17 July 2026), section 4.1.1, for the names; required by tables 2.2 and 2.4. The portrait becomes mandatory
 * later, unless the user opts out. `address.house_number` is a name of its own of that section.
 * github.com/eu-digital-identity-wallet/eudi-doc-attestation-rulebooks-catalog, rulebooks/pid/pid-rulebook.md
 */
// biome-ignore format: a table
const PID_SD_JWT: readonly Row[] = [
  ['family_name', 'Family name', 'Lovelace', 'RI'],
  ['given_name', 'Given names', 'Ada', 'RI'],
  ['birthdate', 'Date of birth', '1985-12-10', 'RI'],
  ['place_of_birth', 'Place of birth', { locality: 'London', country: 'GB' }, 'RI'],
  ['nationalities', 'Nationalities', ['DE'], 'R'],
  ['issuing_authority', 'Issued by', 'Ministry of Examples', 'R'],
  ['issuing_country', 'Country of issue', 'DE', 'R'],
  ['picture', 'Portrait', 'data:image/jpeg;base64,bm90IGEgcGljdHVyZQ==', 'I'],
  ['address/formatted', 'Address', 'Example Street 1, 10115 Berlin', 'I'],
  ['address/street_address', 'Street', 'Example Street', 'I'],
  ['address/house_number', 'House number', '1', 'I'],
  ['address/postal_code', 'Postal code', '10115'],
  ['address/locality', 'Town', 'Berlin'],
  ['address/region', 'State or province', 'Berlin'],
  ['address/country', 'Country', 'DE'],
  ['personal_administrative_number', 'Personal number', 'EX-1815-12-10', 'I'],
  ['birth_family_name', 'Family name at birth', 'Byron', 'I'],
  ['birth_given_name', 'Given names at birth', 'Augusta Ada', 'I'],
  ['sex', 'Sex', 2],
  ['email', 'E-mail', 'ada@example.com', 'I'],
  ['phone_number', 'Mobile number', '+4930000000', 'I'],
  ['date_of_expiry', 'Expires on', '2031-01-01'],
  ['date_of_issuance', 'Issued on', '2026-01-01'],
  ['document_number', 'Document number', 'EX-1234567', 'I'],
  ['issuing_jurisdiction', 'Region of issue', 'DE-BE'],
  ['trust_anchor', 'Where the trust anchor is', 'https://example.com/trust-anchors/pid'],
  ['attestation_legal_category', 'Legal category', 'PID'],
];

/** The same rulebook, section 3.1.2 for the names of an mdoc, and 3.1.3 and 3.1.4 for the two that are no texts. */
// biome-ignore format: a table
const PID_MDOC: readonly Row[] = [
  ['family_name', 'Family name', 'Lovelace', 'RI'],
  ['given_name', 'Given names', 'Ada', 'RI'],
  ['birth_date', 'Date of birth', '1985-12-10', 'RI'],
  ['place_of_birth', 'Place of birth', { locality: 'London', country: 'GB' }, 'RI'],
  ['nationality', 'Nationalities', ['DE'], 'R'],
  ['issuing_authority', 'Issued by', 'Ministry of Examples', 'R'],
  ['issuing_country', 'Country of issue', 'DE', 'R'],
  ['portrait', 'Portrait', 'bm90IGEgcGljdHVyZQ', 'I'],
  ['resident_address', 'Address', 'Example Street 1, 10115 Berlin', 'I'],
  ['resident_street', 'Street and house number', 'Example Street 1', 'I'],
  ['resident_postal_code', 'Postal code', '10115'],
  ['resident_city', 'Town', 'Berlin'],
  ['resident_state', 'State or province', 'Berlin'],
  ['resident_country', 'Country', 'DE'],
  ['personal_administrative_number', 'Personal number', 'EX-1815-12-10', 'I'],
  ['family_name_birth', 'Family name at birth', 'Byron', 'I'],
  ['given_name_birth', 'Given names at birth', 'Augusta Ada', 'I'],
  ['sex', 'Sex', 2],
  ['email_address', 'E-mail', 'ada@example.com', 'I'],
  ['mobile_phone_number', 'Mobile number', '+4930000000', 'I'],
  ['expiry_date', 'Expires on', '2031-01-01'],
  ['issuance_date', 'Issued on', '2026-01-01'],
  ['document_number', 'Document number', 'EX-1234567', 'I'],
  ['issuing_jurisdiction', 'Region of issue', 'DE-BE'],
  ['trust_anchor', 'Where the trust anchor is', 'https://example.com/trust-anchors/pid'],
  ['attestation_legal_category', 'Legal category', 'PID'],
];

/**
 * ISO/IEC 18013-5:2021, section 7.2.1, table 5, which the mDL Rulebook (ARF annex 3.02, section 2.2) takes as it is. Held against
 * two implementations of others, as the standard is not public: openwallet-foundation/multipaz, `DrivingLicense.kt`, and a-sit-plus/vck,
 * `IsoDataModelConstants.kt`. Of `age_over_NN` and of biometric templates there are more.
 */
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
  ['age_over_21', '21 or older', true],
  ['age_in_years', 'Age in years', 40],
  ['age_birth_year', 'Year of birth', 1985],
  ['administrative_number', 'Administrative number', 'EX-1', 'I'],
  ['sex', 'Sex', 2],
  ['height', 'Height (cm)', 165],
  ['weight', 'Weight (kg)', 60],
  ['eye_colour', 'Colour of the eyes', 'brown'],
  ['hair_colour', 'Colour of the hair', 'brown'],
  ['birth_place', 'Place of birth', 'London', 'I'],
  ['nationality', 'Nationality', 'GB'],
  ['resident_address', 'Address', 'Example Street 1, London', 'I'],
  ['resident_city', 'Town', 'London'],
  ['resident_state', 'State or province', 'London'],
  ['resident_postal_code', 'Postal code', 'EX1 1EX'],
  ['resident_country', 'Country', 'GB'],
  ['issuing_jurisdiction', 'Region of issue', 'GB-LND'],
  ['portrait_capture_date', 'Portrait taken on', '2026-01-01'],
  ['family_name_national_character', 'Family name in its own script', 'Lovelace', 'I'],
  ['given_name_national_character', 'Given names in their own script', 'Ada', 'I'],
  ['signature_usual_mark', 'Signature', 'bm90IGEgcGljdHVyZQ', 'I'],
];

/** A made-up type: the catalogue of rulebooks of the EUDI Wallet has none for diplomas (as of July 2026). */
// biome-ignore format: a table
const DIPLOMA: readonly Row[] = [
  ['given_name', 'Given names', 'Ada', 'RI'],
  ['family_name', 'Family name', 'Lovelace', 'RI'],
  ['degree', 'Degree', 'MSc Mathematics', 'R'],
  ['awarding_body', 'Awarded by', 'University of Examples', 'R'],
  ['graduated_on', 'Graduated on', '2026-06-30'],
  ['grade', 'Grade', '1.0'],
];

/**
 * Technical specification of the EU age verification solution 1.0.6, sections 4.1.1 and 4.1.2: this one in all, others of `age_over_NN`
 * in some, and nothing else. github.com/eu-digital-identity-wallet/av-doc-technical-specification
 */
const AGE_PROOF: readonly Row[] = [['age_over_18', '18 or older', true, 'R']];

/** Kinds that many know. What a law demands of one is for its rulebook to say; these are the claims to begin with. */
export const CATALOGUE: readonly KnownKind[] = [
  {
    id: 'pid',
    title: 'Person identification data (SD-JWT VC)',
    source: 'PID Rulebook 1.7 of the EUDI Wallet, section 4.1',
    format: 'dc+sd-jwt',
    // Section 4.2: the base type, which types of member states begin like.
    type: 'urn:eudi:pid:1',
    claims: claims(PID_SD_JWT),
  },
  {
    id: 'pid-mdoc',
    title: 'Person identification data (mdoc)',
    source: 'PID Rulebook 1.7 of the EUDI Wallet, section 3.1',
    format: 'mso_mdoc',
    type: PID,
    namespace: PID,
    claims: claims(PID_MDOC, PID),
  },
  {
    id: 'mdl',
    title: 'Mobile driving licence (mdoc)',
    source: 'ISO/IEC 18013-5, table 5',
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
    source: 'EU age verification, technical specification 1.0.6, section 4.1',
    format: 'mso_mdoc',
    type: AGE,
    namespace: AGE,
    claims: claims(AGE_PROOF, AGE),
  },
];
