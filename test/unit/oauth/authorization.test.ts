import { expect } from 'chai';
import {
  type Authorization,
  type AuthorizationStage,
  moveOn,
  NEXT_STAGES,
} from '../../../domain/oauth/authorization.ts';

const STAGES = Object.keys(NEXT_STAGES) as AuthorizationStage[];

describe('An authorization', () => {
  for (const stage of STAGES) {
    for (const next of STAGES) {
      const follows = (NEXT_STAGES[stage] as readonly string[]).includes(next);
      it(`that is ${stage} ${follows ? 'becomes' : 'never becomes'} ${next}`, () => {
        const move = () => moveOn({ stage, version: 3 } as Authorization, { stage: next });
        if (follows) expect(move()).to.include({ stage: next, version: 4 });
        else expect(move).to.throw(`does not become ${next}`);
      });
    }
  }
});
