import { listAt, textAt } from '../../parts/json-paths.ts';
import { askedOf, inWords, type Kind, kindOf, knownClaim } from './question.ts';

export type Doubt = { readonly what: string; readonly change: string };

type LintContext = { readonly kinds: readonly Kind[]; readonly knowsOwn: boolean };

/** More claims than most purposes need. */
const MANY = 6;

export function doubtsOf(draft: unknown, { kinds, knowsOwn }: LintContext): readonly Doubt[] {
  const doubts: Doubt[] = [];
  const asked = askedOf(draft);
  const claims = asked.flatMap(({ paths = [], format }) => paths.map((path) => ({ path, format })));
  const hasPurpose = listAt(draft, 'purpose').length > 0;
  if (asked.length === 0) doubts.push({ what: 'It asks for nothing.', change: 'Choose a kind of credential under “What it asks for”.' });
  if (claims.length > 0 && !hasPurpose) doubts.push({ what: 'It does not say why it asks.', change: 'Write a purpose, which users see.' });
  if (claims.length > MANY)
    doubts.push({
      what: `It asks for ${claims.length} claims at once.`,
      change: 'Leave out what you do not decide anything by: each is asked of the user, and kept by you.',
    });
  for (const { id, paths } of asked) {
    if (paths !== undefined && paths.length === 0)
      doubts.push({ what: `“${id}” names no claim.`, change: 'Choose claims, or leave out “claims”.' });
  }
  const birth = claims.filter(({ path }) => /^birth_?date$/.test(path.at(-1) ?? ''));
  if (birth.length > 0)
    doubts.push({
      what: 'It asks for a date of birth.',
      change:
        'If you want to know an age, ask for age_over_18: that tells nothing else. Licences and proofs of age have it, a PID has not.',
    });
  const identifying = claims.flatMap(({ path, format }) => {
    const known = knownClaim(path, format);
    return known?.identifies === true ? [known.name.toLowerCase()] : [];
  });
  const asksAge = claims.some(({ path }) => path.some((name) => name.startsWith('age_over_')));
  if (identifying.length > 0 && asksAge)
    doubts.push({ what: `It asks for an age, and with ${inWords(identifying)} also who that is.`, change: 'Ask for the age alone.' });
  const anchors = listAt(draft, 'trustAnchors');
  const foreign = anchors.some((anchor) => textAt(anchor, 'certificate') + textAt(anchor, 'trustList') !== '');
  if (knowsOwn && !foreign) {
    for (const one of asked.filter((query) => kindOf(query, kinds)?.isOwn !== true)) {
      doubts.push({
        what: `No card of this service answers “${one.id}”, and nobody else is trusted.`,
        change: 'Trust who issues it, below.',
      });
    }
  }
  if (anchors.length === 0)
    doubts.push({
      what: 'It names nobody who is trusted, so credentials of your own key chains count alone.',
      change: 'Name whom you trust below.',
    });
  return doubts;
}
