import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import { readDisclosureFrame } from '../../../domain/formats/sd-jwt/disclosure-frame.ts';
import { disclosability } from '../../../domain/issuance/disclosability.ts';
import { integrityOf, keepTypeIntegrity, typeMetadata } from '../../../domain/issuance/type-metadata.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { aConfiguration, ISSUER } from './kit.ts';

const LOGO = { uri: 'https://acme.example/logo.png', alt_text: 'Anchor' };
const LOOK = { logo: LOGO, background_color: '#12355b', text_color: '#ffffff' };
const claim = (...path: (string | number | null)[]) => ({ path });

describe('Type metadata', () => {
  const typeOf = (changes: Record<string, unknown>, frame?: object) =>
    typeMetadata(aConfiguration(changes), ISSUER, frame && readDisclosureFrame(frame));

  it('say what the configuration shows', () => {
    const display = [
      {
        name: 'Card',
        locale: 'en',
        description: 'A card',
        ...LOOK,
        background_image: { uri: 'https://x.example/b' },
      },
      { name: 'Karte', locale: 'de' },
      { name: 'without language' },
    ];
    const claims = [
      {
        path: ['name'],
        mandatory: true,
        display: [{ name: 'Name', locale: 'en' }, { name: 'no language' }],
      },
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
          rendering: { simple: { ...LOOK, background_image: { uri: 'https://x.example/b' } } },
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

  it('say nothing of a type of which nobody said anything', () => {
    expect(typeOf({ vct: null })).to.include({ vct: `${ISSUER}/vct/card`, name: 'Card' });
  });

  it('say of what can be withheld below entries of an array that some may be', () => {
    const told = (frame: object) => disclosability(['list', null, 'a'], readDisclosureFrame({ ...frame }));
    expect(told({ list: { '0': { _sd: ['a'] } } })).to.equal('allowed');
    expect(told({ list: { '0': { _sd: ['a'] }, '1': { _sd: ['b'] } } })).to.equal('allowed');
    expect(told({ list: { '0': { b: { _sd: ['c'] } } } }), 'something else').to.equal('never');
    expect(told({ list: { '0': { _sd: ['b'] } } }), 'another member').to.equal('never');
    expect(told({ list: { _sd: [0] } }), 'what contains it').to.equal('never');
    expect(told({ list: { '0': { _sd_decoy: 1 } } }), 'decoys hide nothing').to.equal('never');
  });

  it('say rather what the type itself says', () => {
    const vct = {
      name: 'Own',
      extends: 'https://types.example/base',
      'extends#integrity': integrityOf('{}'),
      schema_uri: `${ISSUER}/schema/card`,
      'schema_uri#integrity': integrityOf('{}'),
      display: [{ locale: 'fr', name: 'Carte' }],
      claims: [{ path: ['name'], sd: 'allowed' }],
    };
    expect(typeOf({ vct, description: 'For members' })).to.deep.equal({
      ...vct,
      description: 'For members',
      vct: `${ISSUER}/vct/card`,
    });
  });

  it('name languages as readers of today want it, whatever the type calls them', () => {
    const display = [
      { lang: 'fr', name: 'Carte' },
      { locale: 'en', name: 'Card', lang: 'ignored' },
    ];
    const claims = [{ path: ['name'], display: [{ lang: 'fr', label: 'Nom' }] }, { path: ['age'] }];
    const said = typeOf({ vct: { display, claims } });
    expect(said['display']).to.deep.equal([
      { locale: 'fr', name: 'Carte' },
      { locale: 'en', name: 'Card' },
    ]);
    expect(said['claims']).to.deep.equal([
      { path: ['name'], display: [{ locale: 'fr', label: 'Nom' }] },
      { path: ['age'] },
    ]);
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
    it(`say that ${JSON.stringify(path)} is ${sd} disclosed selectively`, () => {
      const config = { format: 'dc+sd-jwt', display: [{ name: 'Card' }], claims: [claim(...path)] };
      const said = (type: JsonObject) =>
        (type['claims'] as readonly JsonObject[]).filter((one) => isDeepStrictEqual(one['path'], path));
      expect(said(typeOf({ config }, FRAME))).to.deep.equal([{ path, sd }]);
      expect(said(typeOf({ config })), 'without a frame').to.deep.equal([{ path, sd: 'never' }]);
    });
  }

  describe('list every claim that is known', () => {
    const paths = (changes: Record<string, unknown>, frame?: object) =>
      ((typeOf({ config: { format: 'dc+sd-jwt' }, ...changes }, frame)['claims'] ?? []) as JsonObject[]).map(
        ({ path }) => JSON.stringify(path),
      );

    it('with what contains those that are described, and iat', () => {
      const config = {
        format: 'dc+sd-jwt',
        claims: [claim('address', 'street'), claim('degrees', null, 'type')],
      };
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
      expect(
        paths({ claims, schema }, { _sd: ['email'], roles: { _sd: [0] }, tree: { _sd: ['leaf'] } }),
      ).to.deep.equal([
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

    it('and none where nothing is known, for then any may come', () => {
      expect(paths({ claims: undefined })).to.deep.equal([]);
    });

    it('within bounds, also where a schema leads in circles', () => {
      const schema = { properties: { child: { $ref: '#' }, sibling: { $ref: '#' } } };
      expect(paths({ claims: undefined, schema })).to.deep.equal(['["child"]', '["sibling"]', '["iat"]']);
      const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`claim${i}`, i]));
      expect(paths({ claims: many })).to.have.length(501);
    });
  });

  it('are hashed by their very bytes', () => {
    // OpenID4VCI examples: computed with another implementation.
    const bytes = '{"vct":"https://types.example.net/staff-badge/1","name":"Staff badge"}';
    expect(integrityOf(bytes)).to.equal('sha256-zBOvnvnA1xdjxV7zhPtep9M+zU+rJ1Ub0LeP5Rop8Qs=');
  });

  it('stay promised until somebody says no more', () => {
    const kept = (wanted: boolean | null | undefined, stored?: boolean | null) =>
      keepTypeIntegrity({ vctIntegrity: wanted }, stored === undefined ? undefined : { vctIntegrity: stored })
        .vctIntegrity;
    for (const unsaid of [null, undefined]) {
      expect(kept(unsaid, true)).to.equal(true);
      for (const none of [false, null, undefined]) expect(kept(unsaid, none)).to.equal(unsaid);
    }
    expect([kept(false, true), kept(true, false), kept(true), kept(false)]).to.deep.equal([
      ...[false, true, true, false],
    ]);
  });
});
