import { expect } from 'chai';
import { findBinaryProblems, hasBinaryClaims, withDataUris } from '../../../domain/issuance/binary-claims.ts';
import { findConfigurationProblems } from '../../../domain/issuance/configuration-rules.ts';
import type { CredentialConfig } from '../../../domain/issuance/credential-config.ts';
import { findClaimTypeProblems } from '../../../domain/issuance/element-types.ts';
import { findMdocProblems, findMdocTypeProblems, mdocElements } from '../../../domain/issuance/mdoc-claims.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';
import { CATALOGUE } from '../../../packages/console/src/pages/credentials/catalogue.ts';
import { DISPLAY, MDL, MDL_NAMESPACE } from './kit.ts';

const PID = 'eu.europa.ec.eudi.pid.1';
const AGE = 'eu.europa.ec.av.1';

const configOf = (namespace: string, changes: Partial<CredentialConfig> = {}): CredentialConfig => ({
  format: 'mso_mdoc',
  docType: namespace,
  namespace,
  ...changes,
});

describe('mdoc element types', () => {
  const MDL = 'org.iso.18013.5.1';
  const AAMVA = `${MDL}.aamva`;

  const WRONG_MDL_CLAIMS: readonly (readonly [namespace: string, name: string, value: Json, path?: string])[] = [
    [MDL, 'age_over_18', 'yes'],
    [MDL, 'age_over_99', 1],
    [MDL, 'sex', 'M'],
    [MDL, 'height', 180.5],
    [MDL, 'height', '170'],
    [MDL, 'weight', -1],
    [MDL, 'issue_date', 1_704_067_200],
    [MDL, 'issue_date', { $type: 'text', value: '2024-01-01' }],
    [MDL, 'birth_date', '1990-01-01T00:00:00Z'],
    [MDL, 'driving_privileges', '[{"vehicle_category_code":"B"}]'],
    [MDL, 'driving_privileges', { vehicle_category_code: 'B' }],
    [MDL, 'driving_privileges', ['B'], 'driving_privileges.0'],
    [MDL, 'driving_privileges', [{ issue_date: '2018-08-09' }], 'driving_privileges.0.vehicle_category_code'],
    [MDL, 'driving_privileges', [{ vehicle_category_code: 'B', codes: [{}] }], 'driving_privileges.0.codes.0.code'],
    [MDL, 'portrait', ''],
    [MDL, 'portrait', 'data:image/jpeg;base64,'],
    [MDL, 'portrait', { $type: 'text', value: '/9j/' }],
    [MDL, 'portrait', null],
    [MDL, 'biometric_template_face', 1],
    [MDL, 'family_name', null],
    [MDL, 'family_name', ['M']],
    [MDL, 'nationality', ['DE']],
    [AAMVA, 'organ_donor', 'yes'],
    [AAMVA, 'DHS_compliance', true],
    [AAMVA, 'hazmat_endorsement_expiration_date', 20_300_101],
    [AAMVA, 'domestic_driving_privileges', {}],
    [AAMVA, 'domestic_driving_privileges', [{ domestic_vehicle_class: 'D' }], 'domestic_driving_privileges.0.domestic_vehicle_class'],
    [PID, 'nationality', 'DE'],
    [PID, 'place_of_birth', 'London'],
    [PID, 'birth_date', null],
    [PID, 'sex', 'F'],
    [PID, 'age_over_18', 1],
    [PID, 'portrait', ''],
    [AGE, 'age_over_18', 'true'],
  ];

  for (const [namespace, name, value, path = name] of WRONG_MDL_CLAIMS) {
    it(`rejects ${name} ${JSON.stringify(value)} in ${namespace}`, () => {
      const config = configOf(namespace);
      const claims = { [name]: value };
      expect(findMdocTypeProblems(config, claims).map((fault) => fault.path)).to.deep.equal([`.${path}`]);
      const faults = findConfigurationProblems({ config, claims, keyBinding: true });
      expect(faults.map((fault) => fault.path)).to.deep.equal([`claims.${path}`]);
    });
  }

  it('are reported with the namespace of the claim, and the expected type with its source', () => {
    const claimsByNamespace = { [MDL]: { height: 180.5 } };
    const config = configOf(MDL, { claimsByNamespace });
    expect(findConfigurationProblems({ config, keyBinding: true })).to.deep.equal([
      { path: `config.claimsByNamespace.${MDL}.height`, message: 'must be a whole number of at least 0 (ISO/IEC 18013-5 table 5)' },
    ]);
  });

  it('allow dates, images, other elements and other namespaces', () => {
    const valid: JsonObject = {
      [MDL]: {
        birth_date: '1990-01-01',
        expiry_date: '2034-10-27T12:00:00Z',
        portrait: 'data:image/jpeg;base64,/9j/4A==',
        height: 180,
        driving_privileges: [],
        our_own: { any: ['thing', null] },
      },
      [AAMVA]: { hazmat_endorsement_expiration_date: '2030-01-01', organ_donor: 1 },
      'org.example.1': { height: 'tall' },
    };
    const config = configOf(MDL, { claimsByNamespace: valid as CredentialConfig['claimsByNamespace'] });
    expect(findMdocTypeProblems(config, valid)).to.deep.equal([]);
  });
});

describe('claim types of the SD-JWT PID', () => {
  const invalid: readonly (readonly [name: string, value: Json, path?: string])[] = [
    ['birthdate', '1990-02-30'],
    ['birthdate', 19_900_101],
    ['nationalities', 'DE'],
    ['nationalities', [1], 'nationalities.0'],
    ['place_of_birth', 'London'],
    ['address', { locality: 1 }, 'address.locality'],
    ['picture', ''],
    ['sex', 'F'],
    ['family_name', null],
    ['age_equal_or_over', { 18: 'yes' }, 'age_equal_or_over.18'],
  ];
  for (const [name, value, path = name] of invalid) {
    it(`rejects ${name} ${JSON.stringify(value)}`, () => {
      for (const vct of ['urn:eudi:pid:1', 'urn:eudi:pid:de:1', { vct: 'urn:eudi:pid:1' }]) {
        expect(findClaimTypeProblems(vct, { [name]: value }).map((fault) => fault.path)).to.deep.equal([`.${path}`]);
      }
      expect(findClaimTypeProblems('urn:example:1', { [name]: value })).to.deep.equal([]);
      const faults = findConfigurationProblems({
        config: { format: 'dc+sd-jwt' },
        vct: 'urn:eudi:pid:1',
        claims: { [name]: value },
        keyBinding: true,
      });
      expect(faults.map((fault) => fault.path)).to.deep.equal([`claims.${path}`]);
    });
  }
});

describe('credential type catalogue', () => {
  for (const kind of CATALOGUE) {
    it(`has examples with valid types: ${kind.title}`, () => {
      for (const { path, example } of kind.claims) {
        const value = [...path].reverse().reduce((inner, name) => ({ [name]: inner }), example as Json);
        const claims = value as JsonObject;
        const faults =
          kind.format === 'mso_mdoc'
            ? findMdocTypeProblems(configOf(kind.namespace ?? ''), claims)
            : findClaimTypeProblems(kind.type, claims);
        expect(faults).to.deep.equal([]);
      }
    });
  }
});

function aConfig(changes: Partial<CredentialConfig> = {}): CredentialConfig {
  return { format: 'mso_mdoc', display: DISPLAY, docType: MDL, ...changes };
}

const withNamespaceClaims = (...namespaces: string[]): Partial<CredentialConfig> => ({
  claimsByNamespace: Object.fromEntries(namespaces.map((namespace) => [namespace, {}])),
});
const withDescribedClaims = (...namespaces: string[]): Partial<CredentialConfig> => ({
  claims: namespaces.map((namespace) => ({ path: [namespace, 'family_name'] })),
});
const ADA = { family_name: 'Lovelace' };

describe('mdoc claims', () => {
  const AAMVA = 'org.iso.18013.5.1.aamva';

  const acceptedClaims: [string, Partial<CredentialConfig>, JsonObject, JsonObject][] = [
    ['flat, in the namespace of a driving licence', {}, ADA, { [MDL_NAMESPACE]: ADA }],
    ['flat, in a namespace like the document type', { docType: PID }, ADA, { [PID]: ADA }],
    ['flat, in the configured namespace', { namespace: AAMVA, ...withNamespaceClaims(MDL_NAMESPACE) }, ADA, { [AAMVA]: ADA }],
    ['flat, in the only namespace with static elements', withNamespaceClaims(AAMVA), ADA, { [AAMVA]: ADA }],
    ['flat, in the only described namespace', withDescribedClaims(AAMVA), ADA, { [AAMVA]: ADA }],
    ['flat, in the default namespace of several', withNamespaceClaims(AAMVA, MDL_NAMESPACE), ADA, { [MDL_NAMESPACE]: ADA }],
    ['flat, with an element that is a map', {}, { place: { town: 'X' } }, { [MDL_NAMESPACE]: { place: { town: 'X' } } }], // biome-ignore format: one case
    ['by the usual namespace', {}, { [MDL_NAMESPACE]: ADA }, { [MDL_NAMESPACE]: ADA }],
    ['by a configured namespace', { namespace: AAMVA }, { [AAMVA]: ADA }, { [AAMVA]: ADA }],
    ['by namespaces, one of them empty', withDescribedClaims(AAMVA), { [MDL_NAMESPACE]: ADA, [AAMVA]: {} }, { [MDL_NAMESPACE]: ADA }],
  ];
  const unreadable: readonly [string, JsonObject, RegExp][] = [
    ['larger than a presentation', { portrait: 'A'.repeat(1_600_000) }, /the maximum is 1409024/],
    ['in too many elements', Object.fromEntries(Array.from({ length: 4_901 }, (_, n) => [`e${n}`, 1])), /at most 4900/],
    ['an element of too many items', { list: Array(10_000).fill(1) }, /list.*at most 10000/],
    ['with an overlong name', { ['n'.repeat(257)]: 1 }, /name that is too long/],
  ];
  for (const [description, claims, message] of unreadable) {
    it(`are rejected when they are ${description}`, () => {
      const [fault] = findMdocProblems(aConfig(), claims);
      expect(`${fault?.path} ${fault?.message}`).to.match(message);
    });
  }

  it('are accepted with an image of 1 MiB, as bytes or as text', () => {
    const text = 'A'.repeat(1024 * 1024);
    expect(findMdocProblems(aConfig(), { portrait: text })).to.deep.equal([]);
    expect(findMdocProblems(aConfig(), { photo: text })).to.deep.equal([]);
  });

  for (const [description, config, claims, expected] of acceptedClaims) {
    it(`are accepted ${description}`, () => {
      expect(mdocElements(aConfig(config), claims)).to.deep.equal(expected);
      expect(findMdocProblems(aConfig(config), claims)).to.deep.equal([]);
    });
  }

  const rejectedClaims: [string, Partial<CredentialConfig>, JsonObject, string][] = [
    ['none', {}, {}, ''],
    ['an empty namespace alone', {}, { [MDL_NAMESPACE]: {} }, ''],
    ['elements beside a namespace', {}, { [MDL_NAMESPACE]: ADA, sex: 1 }, '.sex'],
    ['an undefined namespace beside a defined one', {}, { [MDL_NAMESPACE]: ADA, [AAMVA]: ADA }, `.${AAMVA}`],
    ['a namespace that is not an object', {}, { [MDL_NAMESPACE]: 'Ada' }, `.${MDL_NAMESPACE}`],
    ['an undefined namespace', {}, { [AAMVA]: ADA }, `.${AAMVA}`],
    ['flat ones for several namespaces', withNamespaceClaims(AAMVA, 'other.1'), ADA, ''],
    ['flat ones for several described namespaces', withDescribedClaims(AAMVA, 'other.1'), ADA, ''],
    ['a date that is invalid', {}, { birth_date: '30.02.1984' }, '.birth_date'],
    ['a date that is invalid, by namespace', {}, { [MDL_NAMESPACE]: { birth_date: 'x' } }, `.${MDL_NAMESPACE}.birth_date`], // biome-ignore format: one case
    ['a portrait that is invalid', {}, { portrait: 'no image' }, '.portrait'],
    ['a nested date that is invalid', {}, { driving_privileges: [{ issue_date: 'x' }] }, '.driving_privileges.0.issue_date'], // biome-ignore format: one case
  ];
  for (const [description, config, claims, path] of rejectedClaims) {
    it(`are rejected for ${description}, with their path`, () => {
      expect(findMdocProblems(aConfig(config), claims).map((fault) => fault.path)).to.deep.equal([path]);
    });
  }
});

const IMAGE = { type: 'string', contentEncoding: 'base64', contentMediaType: 'image/jpeg' };
const SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    picture: IMAGE,
    scan: { contentEncoding: 'base64' },
    note: { contentEncoding: 'base64', contentMediaType: 'text/plain; charset=utf-8' },
    odd: { contentEncoding: 'base64', contentMediaType: 'a,b' },
    text: { type: 'string' },
    hex: { contentEncoding: 'base16' },
    named: { $ref: '#/$defs/image' },
    list: { type: 'array', prefixItems: [{ type: 'string' }], items: { $ref: '#/$defs/image' } },
    holder: { type: 'object', properties: { face: { $ref: '#/$defs/alias' } } },
    circle: { $ref: '#/$defs/circle' },
  },
  $defs: { image: IMAGE, alias: { $ref: '#/$defs/image' }, circle: { $ref: '#/$defs/circle' } },
};
const JPEG = '/9j/4AAQSkZJRg==';

describe('claim that the schema defines as bytes', () => {
  const converted = (claims: JsonObject) => withDataUris(claims, SCHEMA);
  const CASES: [string, string, Json, Json][] = [
    ['base64', 'picture', JPEG, `data:image/jpeg;base64,${JPEG}`],
    ['base64 in lines', 'picture', '/9j/\r\n4AAQ\nSkZJRg==', `data:image/jpeg;base64,${JPEG}`],
    ['base64url without padding', 'picture', '_9j_4AAQSkZJRg', `data:image/jpeg;base64,${JPEG}`],
    ['no media type', 'scan', 'AAEC', 'data:application/octet-stream;base64,AAEC'],
    ['a media type with parameters', 'note', 'AAEC', 'data:text/plain;charset=utf-8;base64,AAEC'],
    ['a media type that is invalid', 'odd', 'AAEC', 'data:application/octet-stream;base64,AAEC'],
    ['a data URI', 'picture', 'data:image/png;base64,AAEC', 'data:image/png;base64,AAEC'],
    ['a data URI without type', 'picture', 'data:,a%20b', 'data:,a%20b'],
    ['a data URI of text', 'picture', 'data:image/svg+xml;charset=utf-8,%3Csvg/%3E', 'data:image/svg+xml;charset=utf-8,%3Csvg/%3E'], // biome-ignore format: one case
    ['a reference', 'named', 'AAEC', 'data:image/jpeg;base64,AAEC'],
    ['entries of an array', 'list', ['AAEC', 'AAEC'], ['AAEC', 'data:image/jpeg;base64,AAEC']],
    ['properties of an object', 'holder', { face: 'AAEC' }, { face: 'data:image/jpeg;base64,AAEC' }],
    ['another claim', 'text', 'AAEC', 'AAEC'],
    ['another encoding', 'hex', '00ff', '00ff'],
    ['a circular reference', 'circle', 'AAEC', 'AAEC'],
    ['a value that is not a string', 'picture', 5, 5],
    ['a claim that the schema does not know', 'other', 'AAEC', 'AAEC'],
  ];
  for (const [description, name, input, issued] of CASES) {
    it(`is issued as a data URI, or unchanged: ${description}`, () => {
      expect(findBinaryProblems({ [name]: input }, SCHEMA)).to.deep.equal([]);
      expect(converted({ [name]: input, stays: 1 })).to.deep.equal({ [name]: issued, stays: 1 });
    });
  }

  const REJECTED: [string, JsonObject, string][] = [
    ['words', { picture: 'a face' }, '.picture'],
    ['truncated base64', { picture: 'AAECA' }, '.picture'],
    ['two alphabets', { picture: '+_AA' }, '.picture'],
    ['padding too much', { picture: 'AAE==' }, '.picture'],
    ['an address', { picture: 'https://x.example/y.jpg' }, '.picture'],
    ['a data URI of no data', { picture: 'data:image/png;base64' }, '.picture'],
    ['a data URI with invalid base64', { picture: 'data:image/png;base64,A A' }, '.picture'],
    ['a data URI with truncated base64', { picture: 'data:image/png;base64,AAECA' }, '.picture'],
    ['a data URI with spaces', { picture: 'data:,a b' }, '.picture'],
    ['an array element', { list: ['x', 'AAEC', 'a face'] }, '.list.2'],
    ['a nested property', { holder: { face: 'a face' } }, '.holder.face'],
  ];
  for (const [description, claims, path] of REJECTED) {
    it(`is rejected with its path: ${description}`, () => {
      const faults = findBinaryProblems(claims, SCHEMA);
      expect(faults.map((fault) => fault.path)).to.deep.equal([path]);
      expect(JSON.stringify(faults), 'without the value in the message').to.not.include('a face').and.not.include('AAE');
      expect(() => converted(claims)).to.throw(path);
    });
  }

  it('is checked only if a schema contains it', () => {
    expect(hasBinaryClaims(SCHEMA)).to.equal(true);
    expect(hasBinaryClaims({ properties: { name: { type: 'string' } } })).to.equal(false);
  });
});
