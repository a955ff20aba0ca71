import { expect } from 'chai';
import type { CredentialConfig } from '../../../domain/issuance/credential-config.ts';
import { mdocElements, mdocFaults } from '../../../domain/issuance/mdoc-claims.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { DISPLAY, MDL, MDL_NAMESPACE } from './kit.ts';

const AAMVA = 'org.iso.18013.5.1.aamva';
const PID = 'eu.europa.ec.eudi.pid.1';

function aConfig(changes: Partial<CredentialConfig> = {}): CredentialConfig {
  return { format: 'mso_mdoc', display: DISPLAY, docType: MDL, ...changes };
}

const named = (...namespaces: string[]): Partial<CredentialConfig> => ({
  claimsByNamespace: Object.fromEntries(namespaces.map((namespace) => [namespace, {}])),
});
const described = (...namespaces: string[]): Partial<CredentialConfig> => ({
  claims: namespaces.map((namespace) => ({ path: [namespace, 'family_name'] })),
});
const ADA = { family_name: 'Lovelace' };

describe('Claims of an mdoc', () => {
  const placed: [string, Partial<CredentialConfig>, JsonObject, JsonObject][] = [
    ['flat, in the namespace of a driving licence', {}, ADA, { [MDL_NAMESPACE]: ADA }],
    ['flat, in a namespace like the document type', { docType: PID }, ADA, { [PID]: ADA }],
    [
      'flat, in the configured namespace',
      { namespace: AAMVA, ...named(MDL_NAMESPACE) },
      ADA,
      { [AAMVA]: ADA },
    ],
    ['flat, in the only one that has static elements', named(AAMVA), ADA, { [AAMVA]: ADA }],
    ['flat, in the only one that is described', described(AAMVA), ADA, { [AAMVA]: ADA }],
    ['flat, in the usual one of several', named(AAMVA, MDL_NAMESPACE), ADA, { [MDL_NAMESPACE]: ADA }],
    ['flat, with an element that is a map', {}, { place: { town: 'X' } }, { [MDL_NAMESPACE]: { place: { town: 'X' } } }], // biome-ignore format: one case
    ['by the usual namespace', {}, { [MDL_NAMESPACE]: ADA }, { [MDL_NAMESPACE]: ADA }],
    ['by a configured namespace', { namespace: AAMVA }, { [AAMVA]: ADA }, { [AAMVA]: ADA }],
    [
      'by namespaces, one of them empty',
      described(AAMVA),
      { [MDL_NAMESPACE]: ADA, [AAMVA]: {} },
      { [MDL_NAMESPACE]: ADA },
    ],
  ];
  const unreadable: readonly [string, JsonObject, RegExp][] = [
    ['larger than a presentation', { portrait: 'A'.repeat(1_600_000) }, /at most 1409024/],
    [
      'in too many elements',
      Object.fromEntries(Array.from({ length: 4_901 }, (_, n) => [`e${n}`, 1])),
      /at most 4900/,
    ],
    ['an element of too many items', { list: Array(10_000).fill(1) }, /list.*at most 10000/],
    ['of a name that is too long', { ['n'.repeat(257)]: 1 }, /name that is too long/],
  ];
  for (const [what, claims, message] of unreadable) {
    it(`are rejected when they are ${what}`, () => {
      const [fault] = mdocFaults(aConfig(), claims);
      expect(`${fault?.path} ${fault?.message}`).to.match(message);
    });
  }

  it('are accepted with an image of 1 MiB, as bytes or as text', () => {
    const text = 'A'.repeat(1024 * 1024);
    expect(mdocFaults(aConfig(), { portrait: text })).to.deep.equal([]);
    expect(mdocFaults(aConfig(), { photo: text })).to.deep.equal([]);
  });

  for (const [what, config, claims, expected] of placed) {
    it(`are taken ${what}`, () => {
      expect(mdocElements(aConfig(config), claims)).to.deep.equal(expected);
      expect(mdocFaults(aConfig(config), claims)).to.deep.equal([]);
    });
  }

  const refused: [string, Partial<CredentialConfig>, JsonObject, string][] = [
    ['none', {}, {}, ''],
    ['an empty namespace alone', {}, { [MDL_NAMESPACE]: {} }, ''],
    ['elements beside a namespace', {}, { [MDL_NAMESPACE]: ADA, sex: 1 }, '.sex'],
    ['a namespace that nobody named beside one', {}, { [MDL_NAMESPACE]: ADA, [AAMVA]: ADA }, `.${AAMVA}`],
    ['a namespace that is no object', {}, { [MDL_NAMESPACE]: 'Ada' }, `.${MDL_NAMESPACE}`],
    ['a namespace that nobody named', {}, { [AAMVA]: ADA }, `.${AAMVA}`],
    ['flat ones for several namespaces', named(AAMVA, 'other.1'), ADA, ''],
    ['flat ones for several described namespaces', described(AAMVA, 'other.1'), ADA, ''],
    ['a date that is none', {}, { birth_date: '30.02.1984' }, '.birth_date'],
    ['a date that is none, by namespace', {}, { [MDL_NAMESPACE]: { birth_date: 'x' } }, `.${MDL_NAMESPACE}.birth_date`], // biome-ignore format: one case
    ['a portrait that is none', {}, { portrait: 'no image' }, '.portrait'],
    ['a nested date that is none', {}, { driving_privileges: [{ issue_date: 'x' }] }, '.driving_privileges.0.issue_date'], // biome-ignore format: one case
  ];
  for (const [what, config, claims, path] of refused) {
    it(`are refused for ${what}, at the place`, () => {
      expect(mdocFaults(aConfig(config), claims).map((fault) => fault.path)).to.deep.equal([path]);
    });
  }
});
