import { at, listAt } from '../../parts/json-paths.ts';
import { isDisclosable, isMdoc, labelOf, languagesOf, pathOf } from './claims.ts';

/** Something by which two verifiers, or one at two times, know that they met the same holder. */
export type Link = { readonly what: string; readonly why: string };

/** @param batchSize copies that a wallet gets at a time. */
export function linkable(draft: unknown, batchSize: number): readonly Link[] {
  const copies =
    batchSize > 1
      ? `A wallet gets ${batchSize} copies, so it can show another one each time; one that is shown twice links.`
      : 'A wallet gets one copy, so it is the same in all presentations. A batch size above 1 changes that.';
  const links: Link[] = [
    { what: 'The signature of the issuer', why: `It is different for each copy and the same whenever that copy is shown. ${copies}` },
  ];
  if (isMdoc(draft) || at(draft, 'keyBinding') !== false) {
    links.push({ what: 'The key of the holder', why: 'Each copy has a key of its own and shows it always.' });
  }
  if (at(draft, 'statusManagement') === true) {
    links.push({
      what: 'The place in the status list',
      why: 'The index is one of a copy. Who knows the list sees it in each presentation of it.',
    });
  }
  links.push(
    isMdoc(draft)
      ? { what: 'The digests of all elements', why: 'They are in each presentation, whatever is withheld.' }
      : { what: 'The digests of what is withheld', why: 'They say nothing of the values, and are the same for a copy.' },
  );
  const [locale = 'en'] = languagesOf(draft);
  const always = listAt(draft, 'config', 'claims')
    .filter((claim) => !isDisclosable(draft, pathOf(claim)))
    .map((claim) => labelOf(claim, locale) || pathOf(claim).join(' › '));
  const unnamed = !isMdoc(draft) && at(draft, 'disclosureFrame') === undefined;
  if (unnamed) {
    links.push({
      what: 'All claims',
      why: 'There is no disclosure frame: each verifier sees everything, whatever it asks for, in every copy.',
    });
  } else if (always.length > 0) {
    links.push({ what: always.join(', '), why: 'Nobody can withhold these: each verifier sees them in every copy, asked for or not.' });
  }
  return links;
}
