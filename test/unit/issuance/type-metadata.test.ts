import { expect } from 'chai';
import { readDisclosureFrame } from '../../../domain/formats/sd-jwt/disclosure-frame.ts';
import { disclosability } from '../../../domain/issuance/disclosability.ts';
import { integrityOf, keepTypeIntegrity, typeMetadata } from '../../../domain/issuance/type-metadata.ts';
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
      ],
    });
  });

  it('say nothing of a type of which nobody said anything', () => {
    expect(typeOf({ vct: null })).to.include({ vct: `${ISSUER}/vct/card`, name: 'Card' });
  });

  it('say of what can be withheld below entries of an array that some may be', () => {
    const told = (frame: object) => disclosability(['list', null, 'a'], readDisclosureFrame({ ...frame }));
    expect(told({ list: { '0': { _sd: ['a'] } } })).to.equal('allowed');
    expect(told({ list: { '0': { b: { _sd: ['c'] } } } })).to.equal('allowed');
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
      expect(typeOf({ config }, FRAME)['claims']).to.deep.equal([{ path, sd }]);
      expect(typeOf({ config })['claims'], 'without a frame').to.deep.equal([{ path, sd: 'never' }]);
    });
  }

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
