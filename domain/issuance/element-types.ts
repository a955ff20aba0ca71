import { type Cbor, isArray, isBytes, isMap, isUint, TAG, Tagged } from '../formats/cbor/values.ts';
import { parseElementValue } from '../formats/mdoc/element-values.ts';
import { collectFieldErrors, type FieldError } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';

/** Types by property name; a pattern covers families such as `age_over_NN`. */
type Members<T> = { readonly byName: Readonly<Record<string, T>>; readonly byPattern?: readonly (readonly [RegExp, T])[] };
type ElementType = { readonly name: string; readonly accepts: (value: Cbor) => boolean };
type ListType = { readonly name: string; readonly list: ValueType };
type MapType = { readonly name: string; readonly map: Members<ValueType>; readonly required?: readonly string[] };
type ValueType = ElementType | ListType | MapType;
type TypeTable = { readonly source: string; readonly elements: Members<ValueType> };

const text: ElementType = { name: 'a text', accepts: (value) => typeof value === 'string' };
const uint: ElementType = { name: 'a whole number of at least 0', accepts: isUint };
const bool: ElementType = { name: 'true or false', accepts: (value) => typeof value === 'boolean' };
const bytes: ElementType = {
  name: 'an image or other bytes in base64 that are not empty',
  accepts: (value) => isBytes(value) && value.length > 0,
};
const day: ElementType = { name: 'a date (YYYY-MM-DD)', accepts: (value) => hasTag(value, TAG.fullDate) };
const dayOrTime: ElementType = {
  name: 'a date (YYYY-MM-DD) or a time (RFC 3339)',
  accepts: (value) => hasTag(value, TAG.fullDate) || hasTag(value, TAG.dateTime),
};

function hasTag(value: Cbor, tag: number): boolean {
  return value instanceof Tagged && value.tag === tag;
}

function listOf(list: ValueType, name: string): ListType {
  return { name, list };
}

function mapOf(members: Readonly<Record<string, ValueType>>, required: readonly string[] = []): MapType {
  return { name: 'an object', map: { byName: members }, required };
}

function each<T>(names: string, type: T): Readonly<Record<string, T>> {
  return Object.fromEntries(names.split(' ').map((name) => [name, type]));
}

const AGES = [[/^age_over_\d{2}$/, bool]] as const;
const BIOMETRIC_TEMPLATES = [[/^biometric_template_/, bytes]] as const;

/** Elements of an mdoc by namespace. Elements that a table does not list may have any type. */
const MDOC_TABLES: Readonly<Record<string, TypeTable>> = {
  'org.iso.18013.5.1': {
    source: 'ISO/IEC 18013-5 table 5',
    elements: {
      byName: {
        ...each(
          'family_name given_name issuing_country issuing_authority document_number un_distinguishing_sign administrative_number ' +
            'eye_colour hair_colour birth_place resident_address issuing_jurisdiction nationality resident_city resident_state ' +
            'resident_postal_code resident_country family_name_national_character given_name_national_character',
          text,
        ),
        birth_date: day,
        ...each('issue_date expiry_date portrait_capture_date', dayOrTime),
        ...each('portrait signature_usual_mark', bytes),
        ...each('sex height weight age_in_years age_birth_year', uint),
        driving_privileges: listOf(
          mapOf(
            {
              vehicle_category_code: text,
              ...each('issue_date expiry_date', day),
              codes: listOf(mapOf(each('code sign value', text), ['code']), 'a list of codes'),
            },
            ['vehicle_category_code'],
          ),
          'a list of driving privileges',
        ),
      },
      byPattern: [...AGES, ...BIOMETRIC_TEMPLATES],
    },
  },
  'org.iso.18013.5.1.aamva': {
    source: 'AAMVA Mobile Driver License Implementation Guidelines table 1',
    elements: {
      byName: {
        ...each(
          'name_suffix family_name_truncation given_name_truncation aka_family_name aka_given_name aka_suffix aka_family_name.v2 ' +
            'aka_given_name.v2 race_ethnicity resident_county DHS_compliance DHS_compliance_text audit_information',
          text,
        ),
        ...each(
          'organ_donor veteran weight_range EDL_credential sex DHS_temporary_lawful_status CDL_indicator CDL_non_domiciled aamva_version',
          uint,
        ),
        hazmat_endorsement_expiration_date: day,
        domestic_driving_privileges: listOf(
          mapOf({
            domestic_vehicle_class: mapOf({
              ...each('domestic_vehicle_class_code domestic_vehicle_class_description', text),
              ...each('issue_date expiry_date', day),
            }),
            domestic_vehicle_restrictions: listOf(
              mapOf(each('domestic_vehicle_restriction_code domestic_vehicle_restriction_description', text)),
              'a list of restrictions',
            ),
            domestic_vehicle_endorsements: listOf(
              mapOf(each('domestic_vehicle_endorsement_code domestic_vehicle_endorsement_description', text)),
              'a list of endorsements',
            ),
          }),
          'a list of driving privileges',
        ),
      },
    },
  },
  'eu.europa.ec.eudi.pid.1': {
    source: 'PID Rulebook section 3.1',
    elements: {
      byName: {
        ...each(
          'family_name given_name issuing_authority issuing_country resident_address resident_street resident_house_number ' +
            'resident_postal_code resident_city resident_state resident_country personal_administrative_number family_name_birth ' +
            'given_name_birth email_address mobile_phone_number document_number issuing_jurisdiction location_status ' +
            'trust_anchor attestation_legal_category',
          text,
        ),
        birth_date: day,
        ...each('expiry_date issuance_date', dayOrTime),
        place_of_birth: mapOf(each('country region locality', text)),
        nationality: listOf(text, 'a list of country codes'),
        portrait: bytes,
        ...each('sex age_in_years age_birth_year', uint),
      },
      byPattern: AGES,
    },
  },
  'eu.europa.ec.av.1': { source: 'EU age verification, technical specification section 4.1', elements: { byName: {}, byPattern: AGES } },
};

const filledText: ElementType = { name: 'a text that is not empty', accepts: (value) => typeof value === 'string' && value !== '' };
const dayText: ElementType = {
  name: 'a date (YYYY-MM-DD)',
  accepts: (value) => typeof value === 'string' && collectFieldErrors(() => parseElementValue('', 'birth_date', value)).length === 0,
};
const SD_JWT_PID: TypeTable = {
  source: 'PID Rulebook section 4.1',
  elements: {
    byName: {
      ...each(
        'family_name given_name issuing_authority issuing_country personal_administrative_number birth_family_name ' +
          'birth_given_name email phone_number document_number issuing_jurisdiction trust_anchor attestation_legal_category',
        text,
      ),
      ...each('birthdate date_of_expiry date_of_issuance', dayText),
      place_of_birth: mapOf(each('country region locality', text)),
      nationalities: listOf(text, 'a list of country codes'),
      picture: filledText,
      address: mapOf(each('formatted street_address house_number postal_code locality region country', text)),
      ...each('sex age_in_years age_birth_year', uint),
      age_equal_or_over: { name: 'an object', map: { byName: {}, byPattern: [[/^\d{1,3}$/, bool]] } },
    },
    byPattern: AGES,
  },
};
/** The base type of the PID and the types of member states, which begin like it (PID Rulebook section 4.2). */
const SD_JWT_PID_TYPE = /^urn:eudi:pid:/;

/** Type errors of the elements of a namespace; paths begin with a dot. Elements without a CBOR form are omitted. */
export function findElementTypeProblems(namespace: string, elements: JsonObject): readonly FieldError[] {
  const table = Object.hasOwn(MDOC_TABLES, namespace) ? MDOC_TABLES[namespace] : undefined;
  if (table === undefined) return [];
  return Object.entries(elements).flatMap(([name, json]) => {
    const type = typeOf(table.elements, name);
    if (type === undefined) return [];
    return findTypeProblems(type, parseElementValue(namespace, name, json), `.${name}`, table.source);
  });
}

/** Type errors of the claims of an SD-JWT VC whose type has a table; paths begin with a dot. */
export function findClaimTypeProblems(vct: unknown, claims: JsonObject): readonly FieldError[] {
  const type = isJsonObject(vct) ? vct['vct'] : vct;
  if (typeof type !== 'string' || !SD_JWT_PID_TYPE.test(type)) return [];
  return Object.entries(claims).flatMap(([name, json]) => {
    const expected = typeOf(SD_JWT_PID.elements, name);
    return expected === undefined ? [] : findTypeProblems(expected, toMaps(json), `.${name}`, SD_JWT_PID.source);
  });
}

function findTypeProblems(type: ValueType, value: Cbor, path: string, source: string): FieldError[] {
  const typeError = { path, message: `must be ${type.name} (${source})` };
  if ('accepts' in type) return type.accepts(value) ? [] : [typeError];
  if ('list' in type) {
    if (!isArray(value)) return [typeError];
    return value.flatMap((entry, index) => findTypeProblems(type.list, entry, `${path}.${index}`, source));
  }
  if (!isMap(value)) return [typeError];
  const missingMembers = (type.required ?? [])
    .filter((name) => !value.has(name))
    .map((name) => ({ path: `${path}.${name}`, message: `is required (${source})` }));
  const wrongMembers = [...value].flatMap(([key, member]) => {
    const memberType = typeOf(type.map, String(key));
    return memberType === undefined ? [] : findTypeProblems(memberType, member, `${path}.${String(key)}`, source);
  });
  return [...missingMembers, ...wrongMembers];
}

function typeOf({ byName, byPattern = [] }: Members<ValueType>, name: string): ValueType | undefined {
  if (Object.hasOwn(byName, name)) return byName[name];
  return byPattern.find(([pattern]) => pattern.test(name))?.[1];
}

/** Converts claims of an SD-JWT VC to maps, the shape that the element checks expect. */
function toMaps(json: Json): Cbor {
  if (typeof json !== 'object' || json === null) return json;
  if (!isJsonObject(json)) return json.map(toMaps);
  return new Map(Object.entries(json).map(([name, member]) => [name, toMaps(member)]));
}
