import { expect } from 'chai';
import { readDisclosureFrame } from '../../../domain/formats/sd-jwt/disclosure-frame.ts';
import { CredentialConfigurationBody } from '../../../domain/issuance/configuration.ts';
import { brokenRules } from '../../../domain/issuance/type-rules.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { readWritten } from '../../../domain/shared/read-written.ts';
import { DISPLAY } from './kit.ts';

const base = { config: { format: 'dc+sd-jwt', display: DISPLAY }, vct: 'urn:card:1' };
const typed = (vct: object, more: object = {}) => {
  const read = readWritten(CredentialConfigurationBody, { id: 'card', ...base, vct, ...more } as JsonObject);
  return 'errors' in read ? read.errors.map(({ path }) => path) : [];
};
const claimed = (claim: object, more: object = {}) => typed({ claims: [claim] }, more);
const display = (entry: object) => typed({ display: [{ name: 'Card', locale: 'en', ...entry }] });

describe('The metadata of a type', () => {
  const GOOD: [string, object, object?][] = [
    ['nothing', {}],
    [
      'a display',
      {
        display: [
          { name: 'Card', locale: 'en' },
          { name: 'Karte', locale: 'de' },
        ],
      },
    ],
    ['a display as older drafts wrote it', { display: [{ name: 'Card', lang: 'en' }] }],
    ['members of others', { display: [{ name: 'Card', locale: 'en', other: 1 }], more: true }],
    [
      'a claim with all it can have',
      {
        claims: [
          {
            path: ['name'],
            display: [{ label: 'Name', locale: 'en' }],
            sd: 'never',
            mandatory: true,
            svg_id: 'name_1',
          },
        ],
      },
    ],
    ['paths into arrays', { claims: [{ path: ['list', null, 'a'] }, { path: ['list', 0] }] }],
    [
      'a claim that the frame hides',
      { claims: [{ path: ['name'], sd: 'always' }] },
      { disclosureFrame: { _sd: ['name'] } },
    ],
    [
      'elements that the frame hides',
      { claims: [{ path: ['list', null], sd: 'always' }] },
      { disclosureFrame: { list: { _sd: [0] } } },
    ],
    [
      'a mandatory claim that is there',
      { claims: [{ path: ['name'], mandatory: true }] },
      { claims: { name: 'Ada' } },
    ],
    [
      'a mandatory claim that the backend may bring',
      { claims: [{ path: ['age'], mandatory: true }] },
      { claims: { name: 'Ada' }, claimsWebhook: { url: 'https://b.example' } },
    ],
    [
      'rules of what the service sets',
      { claims: [{ path: ['vct'], mandatory: true, sd: 'never' }] },
      { claims: { name: 'Ada' } },
    ],
  ];
  for (const [what, vct, more] of GOOD)
    it(`may say ${what}`, () => expect(typed(vct, more)).to.deep.equal([]));

  it('has displays with a name, in one language each', () => {
    expect(typed({ display: [{ foo: 1 }] })).to.include.members(['vct.display.0.name']);
    expect(typed({ display: [{ name: 'Card' }] })).to.deep.equal(['vct.display.0.locale']);
    expect(display({ locale: 'not a language' })).to.deep.equal(['vct.display.0.locale']);
    const twice = [
      { name: 'A', locale: 'en' },
      { name: 'B', lang: 'EN' },
    ];
    expect(typed({ display: twice })).to.deep.equal(['vct.display']);
    const labels = [
      { label: 'A', locale: 'en' },
      { label: 'B', locale: 'EN' },
    ];
    expect(claimed({ path: ['a'], display: labels })).to.deep.equal(['vct.claims.0.display']);
    expect(display({ rendering: { simple: { background_color: 'blue' } } })).to.deep.equal([
      'vct.display.0.rendering.simple.background_color',
    ]);
    expect(display({ rendering: { svg_templates: [{}] } })).to.deep.equal([
      'vct.display.0.rendering.svg_templates.0.uri',
    ]);
  });

  it('has claims with a path and what the specification knows of them', () => {
    expect(claimed({ nopath: true })).to.deep.equal(['vct.claims.0.path']);
    for (const path of [[], ['a', -1], ['a', 1.5], 'a', [true]]) {
      expect(claimed({ path })[0]).to.match(/^vct\.claims\.0\.path/);
    }
    expect(claimed({ path: ['a'], sd: 'sometimes' })).to.deep.equal(['vct.claims.0.sd']);
    expect(claimed({ path: ['a'], svg_id: '1 bad' })).to.deep.equal(['vct.claims.0.svg_id']);
    expect(claimed({ path: ['a'], display: [{ label: 'A' }] })).to.deep.equal([
      'vct.claims.0.display.0.locale',
    ]);
    expect(claimed({ path: ['a'], display: [{ locale: 'en' }] })).to.deep.equal([
      'vct.claims.0.display.0.label',
    ]);
    const same = [
      { path: ['a'], svg_id: 'x' },
      { path: ['b'], svg_id: 'x' },
    ];
    expect(typed({ claims: same })).to.deep.equal(['vct.claims']);
    expect(typed({ claims: [{ path: ['a'] }, { path: ['a'] }] })).to.deep.equal(['vct.claims']);
  });

  it('promises nothing that frame, schema and claims of the configuration do not keep', () => {
    expect(claimed({ path: ['name'], sd: 'always' })).to.deep.equal(['vct.claims.0.sd']);
    const hidden = { disclosureFrame: { _sd: ['name'] } };
    expect(claimed({ path: ['name'], sd: 'never' }, hidden)).to.deep.equal(['vct.claims.0.sd']);
    const schema = { type: 'object', properties: { name: {} }, additionalProperties: false };
    expect(claimed({ path: ['age'], mandatory: true }, { schema })).to.deep.equal(['vct.claims.0.mandatory']);
    expect(claimed({ path: ['name'], mandatory: true }, { schema })).to.deep.equal([]);
    const claims = { name: 'Ada' };
    expect(claimed({ path: ['age'], mandatory: true }, { claims })).to.deep.equal(['vct.claims.0.mandatory']);
    expect(claimed({ path: ['age'] }, { claims }), 'one that need not be there').to.deep.equal([]);
    const open = {
      type: 'object',
      properties: { list: { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'object' } } },
    };
    for (const path of [
      ['more', 'below'],
      ['list', null, 'a'],
    ]) {
      expect(claimed({ path, mandatory: true }, { schema: open }), 'what may be there').to.deep.equal([]);
    }
  });

  const CLAIMS: JsonObject = { name: 'Ada', address: { street: 'x', '1': 'y' }, list: ['a', 'b'] };
  const BROKEN: [string, object, object | undefined, string | undefined][] = [
    ['a claim that is there', { path: ['name'], mandatory: true }, undefined, undefined],
    ['a claim that is not', { path: ['age'], mandatory: true }, undefined, 'is mandatory'],
    ['an element that is not', { path: ['list', 2], mandatory: true }, undefined, 'is mandatory'],
    ['a member of an array', { path: ['list', 'length'], mandatory: true }, undefined, 'is mandatory'],
    ['a member of a text', { path: ['name', 'length'], mandatory: true }, undefined, 'is mandatory'],
    ['a position of an object', { path: ['address', 1], mandatory: true }, undefined, 'is mandatory'],
    ['a member of every object', { path: ['toString'], mandatory: true }, undefined, 'is mandatory'],
    [
      'a claim below one that is no object',
      { path: ['name', 'first'], mandatory: true },
      undefined,
      'is mandatory',
    ],
    ['a hidden claim that is always hidden', { path: ['name'], sd: 'always' }, { _sd: ['name'] }, undefined],
    ['a visible one', { path: ['name'], sd: 'always' }, undefined, 'has to be'],
    [
      'one below a hidden one',
      { path: ['address', 'street'], sd: 'always' },
      { _sd: ['address'] },
      'has to be',
    ],
    [
      'elements of which one is visible',
      { path: ['list', null], sd: 'always' },
      { list: { _sd: [0] } },
      'has to be',
    ],
    [
      'elements that are all hidden',
      { path: ['list', null], sd: 'always' },
      { list: { _sd: [0, 1] } },
      undefined,
    ],
    ['an element that is hidden', { path: ['list', 1], sd: 'never' }, { list: { _sd: [1] } }, 'must not be'],
    ['an element beside a hidden one', { path: ['list', 0], sd: 'never' }, { list: { _sd: [1] } }, undefined],
    ['what holders may choose', { path: ['name'], sd: 'allowed' }, { _sd: ['name'] }, undefined],
    ['what is not there and need not be', { path: ['age'], sd: 'always' }, undefined, undefined],
    ['what the service sets', { path: ['exp'], mandatory: true }, undefined, undefined],
  ];
  for (const [what, rule, frame, fault] of BROKEN) {
    it(`${fault === undefined ? 'is kept by' : 'is broken by'} ${what}`, () => {
      const read = frame && readDisclosureFrame(frame);
      const found = brokenRules([rule as { path: string[] }], CLAIMS, read);
      expect(found.map(({ message }) => message.slice(0, fault?.length))).to.deep.equal(
        fault === undefined ? [] : [fault],
      );
    });
  }
});
