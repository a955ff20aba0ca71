import { expect } from 'chai';
import { isWebAddress } from '../../../domain/shared/web-address.ts';

describe('An address of the web', () => {
  const rows: [string, boolean][] = [
    ['https://shop.example/a?b=c', true],
    ['http://localhost:3000', true],
    ['ftp://shop.example', false],
    ['shop.example', false],
    ['https://user@shop.example', false],
    ['https://:secret@shop.example', false],
  ];
  for (const [text, is] of rows) {
    it(`${text} is ${is ? 'one' : 'none'}`, () => expect(isWebAddress(text)).to.equal(is));
  }
});
