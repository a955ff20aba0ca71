import { expect } from 'chai';
import { escapeHtml, fill, inlineImage } from '../../../adapters/http/pages/markup.ts';
import { lookOf } from '../../../domain/tenants/look.ts';

const registered = (privacy_policy: string, support_uri: string) => ({
  body: { privacy_policy, support_uri },
});

describe('How pages of a tenant look', () => {
  it('takes links of the registration where the pages have none of their own', () => {
    const registrationCert = registered('https://a.example/privacy', 'tel:+49');
    const own = { privacyUri: 'https://b.example/privacy' };
    expect(lookOf('Acme', { display: [], registrationCert })).to.include({
      privacyUri: 'https://a.example/privacy',
      supportUri: 'tel:+49',
    });
    expect(lookOf('Acme', { display: [], registrationCert, pages: own })).to.include({
      privacyUri: 'https://b.example/privacy',
      supportUri: 'tel:+49',
    });
    const asked = registered('https://c.example/privacy', 'tel:+43');
    expect(lookOf('Acme', { display: [], registrationCert }, [asked])).to.include({
      privacyUri: 'https://c.example/privacy',
      supportUri: 'tel:+43',
    });
    expect(lookOf('Acme', { display: [], registrationCert: { jwt: 'a.b.c' } })).to.deep.equal({
      name: 'Acme',
      displays: [],
    });
  });

  it('shows images that come along, of a few kinds and not too large', () => {
    for (const type of ['png', 'jpeg', 'webp', 'svg+xml']) {
      expect(inlineImage(`data:image/${type};base64,AAAA`)).to.include('<img');
    }
    const refused = [
      'https://cdn.example/x.png',
      'data:image/gif;base64,AAAA',
      'data:text/html;base64,AAAA',
      'javascript:x',
      `data:image/png;base64,${'A'.repeat(70_000)}`,
    ];
    for (const uri of refused) expect(inlineImage(uri), uri.slice(0, 40)).to.equal('');
    expect(inlineImage('data:image/svg+xml,"><script>')).to.not.include('"><');
  });

  it('puts names into texts that cannot become anything else', () => {
    const name = escapeHtml('<b>{issuer}</b> $& "x"');
    expect(fill('{issuer} & {place}', { issuer: name, place: 'there' })).to.equal(
      '&#60;b&#62;{issuer}&#60;/b&#62; $&#38; &#34;x&#34; &#38; there',
    );
  });
});
