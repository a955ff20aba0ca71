import { expect } from 'chai';
import { VidimusClient } from '../src/index.ts';

describe('client of the service', () => {
  for (const url of [undefined, '', 'issuer.example', 'ftp://issuer.example']) {
    it(`rejects the address ${url} with an example of a valid one`, () => {
      const create = () => new VidimusClient({ url: url as string, accessToken: () => 'token' });
      expect(create).to.throw(TypeError, 'such as https://issuer.example');
    });
  }

  it('requires credentials or a source of access tokens', () => {
    expect(() => new VidimusClient({ url: 'https://issuer.example' })).to.throw(TypeError, 'clientSecret');
  });
});
