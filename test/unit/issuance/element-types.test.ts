import { expect } from 'chai';
import { CATALOGUE } from '../../../adapters/http/console/app/pages/credentials/catalogue.ts';
import { configurationFaults } from '../../../domain/issuance/configuration-rules.ts';
import type { CredentialConfig } from '../../../domain/issuance/credential-config.ts';
import { claimTypeFaults } from '../../../domain/issuance/element-types.ts';
import { mdocTypeFaults } from '../../../domain/issuance/mdoc-claims.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';

const MDL = 'org.iso.18013.5.1';
const AAMVA = `${MDL}.aamva`;
const PID = 'eu.europa.ec.eudi.pid.1';
const AGE = 'eu.europa.ec.av.1';

const configOf = (namespace: string, changes: Partial<CredentialConfig> = {}): CredentialConfig => ({
  format: 'mso_mdoc',
  docType: namespace,
  namespace,
  ...changes,
});

const WRONG: readonly (readonly [namespace: string, name: string, value: Json, path?: string])[] = [
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
  [
    MDL,
    'driving_privileges',
    [{ vehicle_category_code: 'B', codes: [{}] }],
    'driving_privileges.0.codes.0.code',
  ],
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
  [
    AAMVA,
    'domestic_driving_privileges',
    [{ domestic_vehicle_class: 'D' }],
    'domestic_driving_privileges.0.domestic_vehicle_class',
  ],
  [PID, 'nationality', 'DE'],
  [PID, 'place_of_birth', 'London'],
  [PID, 'birth_date', null],
  [PID, 'sex', 'F'],
  [PID, 'age_over_18', 1],
  [PID, 'portrait', ''],
  [AGE, 'age_over_18', 'true'],
];

describe('Types of mdoc elements', () => {
  for (const [namespace, name, value, path = name] of WRONG) {
    it(`rejects ${name} ${JSON.stringify(value)} in ${namespace}`, () => {
      const config = configOf(namespace);
      const claims = { [name]: value };
      expect(mdocTypeFaults(config, claims).map((fault) => fault.path)).to.deep.equal([`.${path}`]);
      const faults = configurationFaults({ config, claims, keyBinding: true });
      expect(faults.map((fault) => fault.path)).to.deep.equal([`claims.${path}`]);
    });
  }

  it('names the namespace of claims by namespace, and the expected type with its source', () => {
    const claimsByNamespace = { [MDL]: { height: 180.5 } };
    const config = configOf(MDL, { claimsByNamespace });
    expect(configurationFaults({ config, keyBinding: true })).to.deep.equal([
      {
        path: `config.claimsByNamespace.${MDL}.height`,
        message: 'must be a whole number of at least 0 (ISO/IEC 18013-5 table 5)',
      },
    ]);
  });

  it('accepts dates, images, other elements and other namespaces', () => {
    const right: JsonObject = {
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
    const config = configOf(MDL, { claimsByNamespace: right as CredentialConfig['claimsByNamespace'] });
    expect(mdocTypeFaults(config, right)).to.deep.equal([]);
  });
});

describe('Types of claims of the SD-JWT PID', () => {
  const wrong: readonly (readonly [name: string, value: Json, path?: string])[] = [
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
  for (const [name, value, path = name] of wrong) {
    it(`rejects ${name} ${JSON.stringify(value)}`, () => {
      for (const vct of ['urn:eudi:pid:1', 'urn:eudi:pid:de:1', { vct: 'urn:eudi:pid:1' }]) {
        expect(claimTypeFaults(vct, { [name]: value }).map((fault) => fault.path)).to.deep.equal([
          `.${path}`,
        ]);
      }
      expect(claimTypeFaults('urn:example:1', { [name]: value })).to.deep.equal([]);
      const faults = configurationFaults({
        config: { format: 'dc+sd-jwt' },
        vct: 'urn:eudi:pid:1',
        claims: { [name]: value },
        keyBinding: true,
      });
      expect(faults.map((fault) => fault.path)).to.deep.equal([`claims.${path}`]);
    });
  }
});

describe('The catalogue of credential types', () => {
  for (const kind of CATALOGUE) {
    it(`has examples of the right types: ${kind.title}`, () => {
      for (const { path, example } of kind.claims) {
        const value = [...path].reverse().reduce((inner, name) => ({ [name]: inner }), example as Json);
        const claims = value as JsonObject;
        const faults =
          kind.format === 'mso_mdoc'
            ? mdocTypeFaults(configOf(kind.namespace ?? ''), claims)
            : claimTypeFaults(kind.type, claims);
        expect(faults).to.deep.equal([]);
      }
    });
  }
});
