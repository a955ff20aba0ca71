import { expect } from 'chai';
import { WebhookConfig } from '../../../domain/webhooks/webhook.ts';

describe('The webhook of a backend', () => {
  const takes = (config: object, url = 'https://backend.example/hook') =>
    WebhookConfig.safeParse({ url, auth: { type: 'apiKey', config } }).success;
  const header = (headerName: string) => takes({ headerName, value: 'secret' });
  const value = (text: string) => takes({ headerName: 'x-key', value: text });

  it('bears a key in a header that is free for it', () => {
    for (const name of ['Authorization', 'x-api-key', 'Contents', 'hook'])
      expect(header(name), name).to.equal(true);
  });

  for (const name of [
    'Host',
    'Content-Length',
    'content-type',
    'webhook-id',
    'Idempotency-Key',
    'a b',
    'a:',
    '',
  ]) {
    it(`bears none in the header ${JSON.stringify(name)}`, () => expect(header(name)).to.equal(false));
  }

  it('has a key of one visible line', () => {
    for (const text of ['Bearer abc', 'x', 'a\tb']) expect(value(text)).to.equal(true);
    for (const text of ['', ' x', 'x ', 'a\r\nb', 'ä']) expect(value(text)).to.equal(false);
  });

  it('stands at an address of the web', () => {
    const config = { headerName: 'x-key', value: 'secret' };
    expect(takes(config, 'http://backend.example:8080/')).to.equal(true);
    for (const url of ['ftp://backend.example/', 'https://u:p@backend.example/', 'backend']) {
      expect(takes(config, url)).to.equal(false);
    }
  });
});
