import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import { parseDisclosureFrame } from '../../../domain/formats/sd-jwt/disclosure-frame.ts';
import { CredentialConfigurationBody } from '../../../domain/issuance/configuration.ts';
import { disclosability } from '../../../domain/issuance/disclosability.ts';
import { integrityOf, keepTypeIntegrity, typeMetadata } from '../../../domain/issuance/type-metadata.ts';
import { findTypeRuleViolations } from '../../../domain/issuance/type-rules.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { safeParseInput } from '../../../domain/shared/parse-input.ts';
import { aConfiguration, DISPLAY, ISSUER } from './kit.ts';

const LOGO = { uri: 'https://acme.example/logo.png', alt_text: 'Anchor' };
const BRANDING = { logo: LOGO, background_color: '#12355b', text_color: '#ffffff' };
const claim = (...path: (string | number | null)[]) => ({ path });

describe('type metadata', () => {
  const typeOf = (changes: Record<string, unknown>, frame?: object) =>
    typeMetadata(aConfiguration(changes), ISSUER, frame && parseDisclosureFrame(frame));

  it('contain the display of the configuration', () => {
    const display = [
      { name: 'Card', locale: 'en', description: 'A card', ...BRANDING, background_image: { uri: 'https://x.example/b' } },
      { name: 'Karte', locale: 'de' },
      { name: 'without language' },
    ];
    const claims = [
      { path: ['name'], mandatory: true, display: [{ name: 'Name', locale: 'en' }, { name: 'no language' }] },
      { path: ['age'], mandatory: false },
    ];
    const config = { format: 'dc+sd-jwt', display, claims };
    expect(typeOf({ config, description: 'For members' }, { _sd: ['age'] })).to.deep.equal({
      vct: `${ISSUER}/vct/card`,
      name: 'Card',
      description: 'For members',
      display: [
        {
          locale: 'en',
          name: 'Card',
          description: 'A card',
          rendering: { simple: { ...BRANDING, background_image: { uri: 'https://x.example/b' } } },
        },
        { locale: 'de', name: 'Karte' },
      ],
      claims: [
        { path: ['name'], display: [{ locale: 'en', label: 'Name' }], mandatory: true, sd: 'never' },
        { path: ['age'], sd: 'always' },
        { path: ['iat'], sd: 'never' },
      ],
    });
  });

  it('have the name of the configuration if nothing is configured', () => {
    expect(typeOf({ vct: null })).to.include({ vct: `${ISSUER}/vct/card`, name: 'Card' });
  });

  it('state that some of the selectively disclosable entries below an array may be disclosed', () => {
    const disclosure = (frame: object) => disclosability(['list', null, 'a'], parseDisclosureFrame({ ...frame }));
    expect(disclosure({ list: { '0': { _sd: ['a'] } } })).to.equal('allowed');
    expect(disclosure({ list: { '0': { _sd: ['a'] }, '1': { _sd: ['b'] } } })).to.equal('allowed');
    expect(disclosure({ list: { '0': { b: { _sd: ['c'] } } } }), 'an unrelated path').to.equal('never');
    expect(disclosure({ list: { '0': { _sd: ['b'] } } }), 'another property').to.equal('never');
    expect(disclosure({ list: { _sd: [0] } }), 'its parent').to.equal('never');
    expect(disclosure({ list: { '0': { _sd_decoy: 1 } } }), 'decoys do not count').to.equal('never');
  });

  it('prefer the properties of the type itself', () => {
    const vct = {
      name: 'Own',
      extends: 'https://types.example/base',
      'extends#integrity': integrityOf('{}'),
      schema_uri: `${ISSUER}/schema/card`,
      'schema_uri#integrity': integrityOf('{}'),
      display: [{ locale: 'fr', name: 'Carte' }],
      claims: [{ path: ['name'], sd: 'allowed' }],
    };
    expect(typeOf({ vct, description: 'For members' })).to.deep.equal({ ...vct, description: 'For members', vct: `${ISSUER}/vct/card` });
  });

  it('use the current name of the language property, regardless of the type', () => {
    const display = [
      { lang: 'fr', name: 'Carte' },
      { locale: 'en', name: 'Card', lang: 'ignored' },
    ];
    const claims = [{ path: ['name'], display: [{ lang: 'fr', label: 'Nom' }] }, { path: ['age'] }];
    const claimsOf = typeOf({ vct: { display, claims } });
    expect(claimsOf['display']).to.deep.equal([
      { locale: 'fr', name: 'Carte' },
      { locale: 'en', name: 'Card' },
    ]);
    expect(claimsOf['claims']).to.deep.equal([{ path: ['name'], display: [{ locale: 'fr', label: 'Nom' }] }, { path: ['age'] }]);
  });

  const FRAME = {
    _sd: ['name', 'whole'],
    whole: { _sd: ['part'] },
    open: { _sd: ['part'] },
    list: { _sd: [0, 2] },
    objects: { '0': { _sd: ['a'] } },
    shown: {},
  };
  const cases: [(string | number | null)[], string][] = [
    [['name'], 'always'],
    [['other'], 'never'],
    [['whole', 'part'], 'always'],
    [['whole', 'rest'], 'never'],
    [['open'], 'never'],
    [['open', 'part'], 'always'],
    [['list'], 'never'],
    [['list', null], 'allowed'],
    [['list', 2], 'always'],
    [['list', 1], 'never'],
    [['objects', null, 'a'], 'allowed'],
    [['objects', 0, 'a'], 'always'],
    [['shown', null], 'never'],
    [['unknown', 'deep', null, 'er'], 'never'],
  ];
  for (const [path, sd] of cases) {
    it(`state that ${JSON.stringify(path)} is ${sd} disclosed selectively`, () => {
      const config = { format: 'dc+sd-jwt', display: [{ name: 'Card' }], claims: [claim(...path)] };
      const claimsOf = (type: JsonObject) =>
        (type['claims'] as readonly JsonObject[]).filter((claim) => isDeepStrictEqual(claim['path'], path));
      expect(claimsOf(typeOf({ config }, FRAME))).to.deep.equal([{ path, sd }]);
      expect(claimsOf(typeOf({ config })), 'without a frame').to.deep.equal([{ path, sd: 'never' }]);
    });
  }

  describe('list the claims', () => {
    const paths = (changes: Record<string, unknown>, frame?: object) =>
      ((typeOf({ config: { format: 'dc+sd-jwt' }, ...changes }, frame)['claims'] ?? []) as JsonObject[]).map(({ path }) =>
        JSON.stringify(path),
      );

    it('with the parents of described claims, and iat', () => {
      const config = { format: 'dc+sd-jwt', claims: [claim('address', 'street'), claim('degrees', null, 'type')] };
      expect(paths({ config, claims: undefined })).to.deep.equal([
        '["address"]',
        '["address","street"]',
        '["degrees"]',
        '["degrees",null]',
        '["degrees",null,"type"]',
        '["iat"]',
      ]);
    });

    it('of static claims, of the schema and of the frame', () => {
      const schema = {
        $defs: { degree: { type: 'object', properties: { year: {}, none: false } } },
        properties: { age: { type: 'integer' }, degrees: { items: { $ref: '#/$defs/degree' } } },
      };
      const claims = { name: 'Ada', nationalities: ['GB', 'FR'] };
      expect(paths({ claims, schema }, { _sd: ['email'], roles: { _sd: [0] }, tree: { _sd: ['leaf'] } })).to.deep.equal([
        '["name"]',
        '["nationalities"]',
        '["nationalities",null]',
        '["age"]',
        '["degrees"]',
        '["degrees",null]',
        '["degrees",null,"year"]',
        '["email"]',
        '["roles"]',
        '["roles",null]',
        '["tree"]',
        '["tree","leaf"]',
        '["iat"]',
      ]);
    });

    it('only if some are known, since any claim is possible otherwise', () => {
      expect(paths({ claims: undefined })).to.deep.equal([]);
    });

    it('within bounds, also for recursive schemas', () => {
      const schema = { properties: { child: { $ref: '#' }, sibling: { $ref: '#' } } };
      expect(paths({ claims: undefined, schema })).to.deep.equal(['["child"]', '["sibling"]', '["iat"]']);
      const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`claim${i}`, i]));
      expect(paths({ claims: many })).to.have.length(501);
    });
  });

  it('are hashed by their exact bytes', () => {
    // The expected digests come from another implementation.
    const bytes = '{"vct":"https://types.example.net/staff-badge/1","name":"Staff badge"}';
    expect(integrityOf(bytes)).to.equal('sha256-zBOvnvnA1xdjxV7zhPtep9M+zU+rJ1Ub0LeP5Rop8Qs=');
  });

  it('keep their integrity until it is disabled explicitly', () => {
    const keptIntegrity = (requested: boolean | null | undefined, stored?: boolean | null) =>
      keepTypeIntegrity({ vctIntegrity: requested }, stored === undefined ? undefined : { vctIntegrity: stored }).vctIntegrity;
    for (const unchanged of [null, undefined]) {
      expect(keptIntegrity(unchanged, true)).to.equal(true);
      for (const disabled of [false, null, undefined]) expect(keptIntegrity(unchanged, disabled)).to.equal(unchanged);
    }
    expect([keptIntegrity(false, true), keptIntegrity(true, false), keptIntegrity(true), keptIntegrity(false)]).to.deep.equal([
      ...[false, true, true, false],
    ]);
  });
});

const base = { config: { format: 'dc+sd-jwt', display: DISPLAY }, vct: 'urn:card:1' };
const findProblems = (vct: object, overrides: object = {}) => {
  const read = safeParseInput(CredentialConfigurationBody, { id: 'card', ...base, vct, ...overrides } as JsonObject);
  return 'errors' in read ? read.errors.map(({ path }) => path) : [];
};
const claimProblems = (claim: object, overrides: object = {}) => findProblems({ claims: [claim] }, overrides);
const display = (entry: object) => findProblems({ display: [{ name: 'Card', locale: 'en', ...entry }] });

describe('metadata of a type', () => {
  const VALID: [string, object, object?][] = [
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
    ['a display in the syntax of older drafts', { display: [{ name: 'Card', lang: 'en' }] }],
    ['properties of others', { display: [{ name: 'Card', locale: 'en', other: 1 }], more: true }],
    [
      'a claim with all properties',
      { claims: [{ path: ['name'], display: [{ label: 'Name', locale: 'en' }], sd: 'never', mandatory: true, svg_id: 'name_1' }] },
    ],
    ['paths into arrays', { claims: [{ path: ['list', null, 'a'] }, { path: ['list', 0] }] }],
    ['a claim that the frame hides', { claims: [{ path: ['name'], sd: 'always' }] }, { disclosureFrame: { _sd: ['name'] } }],
    ['elements that the frame hides', { claims: [{ path: ['list', null], sd: 'always' }] }, { disclosureFrame: { list: { _sd: [0] } } }],
    ['an existing mandatory claim', { claims: [{ path: ['name'], mandatory: true }] }, { claims: { name: 'Ada' } }],
    [
      'a mandatory claim of the backend',
      { claims: [{ path: ['age'], mandatory: true }] },
      { claims: { name: 'Ada' }, claimsWebhook: { url: 'https://b.example' } },
    ],
    ['rules for claims of the service', { claims: [{ path: ['vct'], mandatory: true, sd: 'never' }] }, { claims: { name: 'Ada' } }],
  ];
  for (const [description, vct, overrides] of VALID)
    it(`may contain ${description}`, () => expect(findProblems(vct, overrides)).to.deep.equal([]));

  it('has displays with a name, in one language each', () => {
    expect(findProblems({ display: [{ foo: 1 }] })).to.include.members(['vct.display.0.name']);
    expect(findProblems({ display: [{ name: 'Card' }] })).to.deep.equal(['vct.display.0.locale']);
    expect(display({ locale: 'not a language' })).to.deep.equal(['vct.display.0.locale']);
    const twice = [
      { name: 'A', locale: 'en' },
      { name: 'B', lang: 'EN' },
    ];
    expect(findProblems({ display: twice })).to.deep.equal(['vct.display']);
    const labels = [
      { label: 'A', locale: 'en' },
      { label: 'B', locale: 'EN' },
    ];
    expect(claimProblems({ path: ['a'], display: labels })).to.deep.equal(['vct.claims.0.display']);
    expect(display({ rendering: { simple: { background_color: 'blue' } } })).to.deep.equal([
      'vct.display.0.rendering.simple.background_color',
    ]);
    expect(display({ rendering: { svg_templates: [{}] } })).to.deep.equal(['vct.display.0.rendering.svg_templates.0.uri']);
  });

  it('has claims with a path and the specified properties', () => {
    expect(claimProblems({ nopath: true })).to.deep.equal(['vct.claims.0.path']);
    for (const path of [[], ['a', -1], ['a', 1.5], 'a', [true]]) {
      expect(claimProblems({ path })[0]).to.match(/^vct\.claims\.0\.path/);
    }
    expect(claimProblems({ path: ['a'], sd: 'sometimes' })).to.deep.equal(['vct.claims.0.sd']);
    expect(claimProblems({ path: ['a'], svg_id: '1 bad' })).to.deep.equal(['vct.claims.0.svg_id']);
    expect(claimProblems({ path: ['a'], display: [{ label: 'A' }] })).to.deep.equal(['vct.claims.0.display.0.locale']);
    expect(claimProblems({ path: ['a'], display: [{ locale: 'en' }] })).to.deep.equal(['vct.claims.0.display.0.label']);
    const duplicates = [
      { path: ['a'], svg_id: 'x' },
      { path: ['b'], svg_id: 'x' },
    ];
    expect(findProblems({ claims: duplicates })).to.deep.equal(['vct.claims']);
    expect(findProblems({ claims: [{ path: ['a'] }, { path: ['a'] }] })).to.deep.equal(['vct.claims']);
  });

  it('must match frame, schema and claims of the configuration', () => {
    expect(claimProblems({ path: ['name'], sd: 'always' })).to.deep.equal(['vct.claims.0.sd']);
    const hidden = { disclosureFrame: { _sd: ['name'] } };
    expect(claimProblems({ path: ['name'], sd: 'never' }, hidden)).to.deep.equal(['vct.claims.0.sd']);
    const schema = { type: 'object', properties: { name: {} }, additionalProperties: false };
    expect(claimProblems({ path: ['age'], mandatory: true }, { schema })).to.deep.equal(['vct.claims.0.mandatory']);
    expect(claimProblems({ path: ['name'], mandatory: true }, { schema })).to.deep.equal([]);
    const claims = { name: 'Ada' };
    expect(claimProblems({ path: ['age'], mandatory: true }, { claims })).to.deep.equal(['vct.claims.0.mandatory']);
    expect(claimProblems({ path: ['age'] }, { claims }), 'an optional property').to.deep.equal([]);
    const openSchema = {
      type: 'object',
      properties: { list: { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'object' } } },
    };
    for (const path of [
      ['more', 'below'],
      ['list', null, 'a'],
    ]) {
      expect(claimProblems({ path, mandatory: true }, { schema: openSchema }), 'a possible property').to.deep.equal([]);
    }
  });

  const CLAIMS: JsonObject = { name: 'Ada', address: { street: 'x', '1': 'y' }, list: ['a', 'b'] };
  const RULES: [string, object, object | undefined, string | undefined][] = [
    ['an existing claim', { path: ['name'], mandatory: true }, undefined, undefined],
    ['a missing claim', { path: ['age'], mandatory: true }, undefined, 'is mandatory'],
    ['a missing element', { path: ['list', 2], mandatory: true }, undefined, 'is mandatory'],
    ['an element of an array', { path: ['list', 'length'], mandatory: true }, undefined, 'is mandatory'],
    ['a property of a text', { path: ['name', 'length'], mandatory: true }, undefined, 'is mandatory'],
    ['a position of an object', { path: ['address', 1], mandatory: true }, undefined, 'is mandatory'],
    ['a property of every object', { path: ['toString'], mandatory: true }, undefined, 'is mandatory'],
    ['a claim below one that is not an object', { path: ['name', 'first'], mandatory: true }, undefined, 'is mandatory'],
    ['a hidden claim that is always hidden', { path: ['name'], sd: 'always' }, { _sd: ['name'] }, undefined],
    ['a visible claim', { path: ['name'], sd: 'always' }, undefined, 'must be s'],
    ['a claim below a hidden claim', { path: ['address', 'street'], sd: 'always' }, { _sd: ['address'] }, 'must be s'],
    ['elements with a visible one', { path: ['list', null], sd: 'always' }, { list: { _sd: [0] } }, 'must be s'],
    ['elements that are hidden', { path: ['list', null], sd: 'always' }, { list: { _sd: [0, 1] } }, undefined],
    ['an element that is hidden', { path: ['list', 1], sd: 'never' }, { list: { _sd: [1] } }, 'must not be'],
    ['a visible element beside a hidden one', { path: ['list', 0], sd: 'never' }, { list: { _sd: [1] } }, undefined],
    ['a claim that the holder may disclose', { path: ['name'], sd: 'allowed' }, { _sd: ['name'] }, undefined],
    ['a missing optional claim', { path: ['age'], sd: 'always' }, undefined, undefined],
    ['a claim of the service', { path: ['exp'], mandatory: true }, undefined, undefined],
  ];
  for (const [description, rule, frame, fault] of RULES) {
    it(`${fault === undefined ? 'satisfies the rules with' : 'violates the rules with'} ${description}`, () => {
      const read = frame && parseDisclosureFrame(frame);
      const violations = findTypeRuleViolations([rule as { path: string[] }], CLAIMS, read);
      expect(violations.map(({ message }) => message.slice(0, fault?.length))).to.deep.equal(fault === undefined ? [] : [fault]);
    });
  }
});
