import { expect } from 'chai';
import { ConfigurationId } from '../../../domain/shared/bounds.ts';

describe('the id of a configuration', () => {
  for (const id of ['card', 'Card.v1_2~3-x', 'constructors', 'x'.repeat(128)]) {
    it(`may be ${id}`, () => expect(ConfigurationId.safeParse(id).success).to.equal(true));
  }
  for (const id of ['constructor', 'prototype', '__proto__', '', '-x', 'a b', 'a/b', 'x'.repeat(129)]) {
    it(`may not be "${id}"`, () => expect(ConfigurationId.safeParse(id).success).to.equal(false));
  }
});
