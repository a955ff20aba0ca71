import { expect } from 'chai';
import {
  type CredentialConfiguration,
  CredentialConfigurationBody,
} from '../../../domain/issuance/configuration.ts';
import {
  defaultIssuance,
  type IssuanceConfiguration,
  IssuanceConfigurationBody,
  withDefaults,
} from '../../../domain/issuance/issuance-configuration.ts';
import { type IssuerMetadataParts, issuerMetadata } from '../../../domain/issuance/metadata.ts';
import { typeMetadata } from '../../../domain/issuance/type-metadata.ts';
import { TrustListData } from '../../../domain/trust-lists/scheme-information.ts';

const PIXEL = 'iVBORw0KGgo=';
const IMAGES = [
  'https://acme.example/logo.png?size=2',
  'http://localhost:3000/logo.svg',
  `data:image/png;base64,${PIXEL}`,
  `data:image/svg+xml;charset=utf-8;base64,${PIXEL}`,
  'data:image/svg+xml,%3Csvg%20xmlns=%22http://www.w3.org/2000/svg%22/%3E',
];
const HARMFUL = [
  'javascript:alert(1)',
  'JavaScript:alert(1)',
  ' javascript:alert(1)',
  'java\nscript:alert(1)',
  'vbscript:x',
  'data:text/html,<script>alert(1)</script>',
  'data:text/html;base64,PHNjcmlwdD4=',
  'data:image/png,<script>',
  'data:application/javascript,alert(1)',
  'data:,x',
  'file:///etc/passwd',
  'blob:https://acme.example/1',
  'ftp://acme.example/logo.png',
  'https://user:secret@acme.example/logo.png',
  'logo.png',
  '',
  'https://acme.example/\u0000.png',
  'data:image/svg+xml,%3Csvg%',
];
const SD_JWT = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card' }] },
  vct: 'urn:card:1',
};
const shown = (display: object) => ({
  ...SD_JWT,
  config: { ...SD_JWT.config, display: [{ name: 'Card', ...display }] },
});
const typed = (vct: object | string) => ({ ...SD_JWT, vct });

/** Where a wallet or a browser is told an image, and how a configuration says it. */
const PLACES: Readonly<Record<string, (uri: string) => boolean>> = {
  'the logo of the issuer': (uri) =>
    IssuanceConfigurationBody.safeParse({ display: [{ name: 'Acme', logo: { uri } }] }).success,
  'the logo of a credential': (uri) =>
    CredentialConfigurationBody.safeParse(shown({ logo: { uri } })).success,
  'the background of a credential': (uri) =>
    CredentialConfigurationBody.safeParse(shown({ background_image: { uri } })).success,
  'the logo of a type': (uri) =>
    CredentialConfigurationBody.safeParse(
      typed({ display: [{ name: 'Card', locale: 'en', rendering: { simple: { logo: { uri } } } }] }),
    ).success,
  'a template of a type': (uri) =>
    CredentialConfigurationBody.safeParse(
      typed({ display: [{ name: 'Card', locale: 'en', rendering: { svg_templates: [{ uri }] } }] }),
    ).success,
};

describe('An address that wallets and browsers show', () => {
  for (const [place, isTaken] of Object.entries(PLACES)) {
    for (const uri of IMAGES) it(`is taken as ${place}: ${uri}`, () => expect(isTaken(uri)).to.equal(true));
    for (const uri of HARMFUL) {
      it(`is refused as ${place}: ${JSON.stringify(uri)}`, () => expect(isTaken(uri)).to.equal(false));
    }
  }

  for (const uri of ['javascript:alert(1)', 'JAVASCRIPT:x', ' data:text/html,x', 'file:///x', 'vbscript:x']) {
    it(`is no name of a type, no schema and no identifier of a list: ${uri}`, () => {
      for (const vct of [uri, { vct: uri }, { extends: uri }, { schema_uri: uri }]) {
        expect(CredentialConfigurationBody.safeParse(typed(vct)).success, JSON.stringify(vct)).to.equal(
          false,
        );
      }
      const data = (LoTEType: string) => ({ LoTE: { ListAndSchemeInformation: { LoTEType } } });
      expect(TrustListData.safeParse(data(uri)).success).to.equal(false);
      expect(TrustListData.safeParse(data('https://acme.example/type')).success).to.equal(true);
    });
  }

  it('is stored in the form in which browsers send it', () => {
    const uri = 'https://acme.example/logo für alle.png';
    const { display } = IssuanceConfigurationBody.parse({ display: [{ name: 'Acme', logo: { uri } }] });
    expect(display[0]?.logo?.uri).to.equal('https://acme.example/logo%20f%C3%BCr%20alle.png');
  });

  for (const [uri, normal] of [
    ['https://acme.example/a|b.png', 'https://acme.example/a%7Cb.png'],
    ['https://acme.example/%.png', 'https://acme.example/%25.png'],
    ['https://acme.example/logo.png?filter[x]=1', 'https://acme.example/logo.png?filter%5Bx%5D=1'],
    ['https://münchen.example/{x}.png', 'https://xn--mnchen-3ya.example/%7Bx%7D.png'],
  ] as const) {
    it(`is stored as ${normal} when ${uri} is written`, () => {
      const body = IssuanceConfigurationBody.parse({ display: [{ name: 'Acme', logo: { uri } }] });
      expect(body.display[0]?.logo?.uri).to.equal(normal);
    });
  }

  it('is left out of what is published where an earlier release took what is none', () => {
    const odd = { logo: { uri: 'https://acme.example/a|b.png' }, background_image: { uri: 'logo.png' } };
    const good = { logo: { uri: 'https://acme.example/ä.png' } };
    const times = { createdAt: new Date(0), updatedAt: new Date(0) } as const;
    const config = { ...SD_JWT.config, display: [{ name: 'Card', locale: 'en', ...odd }] };
    const vct = {
      display: [{ name: 'Card', locale: 'en', rendering: { simple: { ...odd, text_color: '#fff' } } }],
    };
    const stored = {
      ...SD_JWT,
      ...times,
      keyBinding: true,
      config,
      vct,
    } as unknown as CredentialConfiguration;
    const issuance = {
      ...defaultIssuance('Acme'),
      display: [
        { name: 'Acme', ...odd },
        { name: 'Ä', ...good },
      ],
    };
    const metadata = JSON.stringify(
      issuerMetadata({
        issuer: 'https://issuer.example/acme',
        issuance: issuance as unknown as IssuerMetadataParts['issuance'],
        configurations: [stored],
        signingAlgorithm: () => 'ES256',
        encryptionKeys: [],
      }),
    );
    expect(metadata).to.include('"name":"Card"').and.include('https://acme.example/%C3%A4.png');
    const type = JSON.stringify(typeMetadata(stored, 'https://issuer.example/acme', undefined));
    expect(type).to.include('#fff');
    for (const text of [metadata, type]) expect(text).not.to.include('a|b').and.not.to.include('logo.png');
  });

  it('is read as it was stored by an earlier release', () => {
    const times = { id: 'default', createdAt: new Date(0), updatedAt: new Date(0) } as const;
    const display = [{ name: 'Acme', logo: { uri: 'javascript:alert(1)' } }];
    const { walletProviders: _later, ...known } = defaultIssuance('Acme');
    const stored = { ...known, ...times, display } as unknown as IssuanceConfiguration;
    expect(withDefaults(stored)).to.deep.include({ display, walletProviders: [] });
  });
});
