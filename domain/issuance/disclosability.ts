import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';

/** Claims path pointer (SD-JWT VC section 5.6.1): property names, positions, or null for all elements of an array. */
type Path = readonly (string | number | null)[];

type Disclosability = 'always' | 'allowed' | 'never';

/**
 * Tells if the claim itself, independent of its parents, can be withheld (SD-JWT VC section 5.6.3). A frame hides positions of an array
 * individually, so the claim about all elements is at most `allowed`.
 * @param frame of the selectively disclosable claims; absent when there are none.
 */
export function disclosability(path: Path, frame: Frame | undefined): Disclosability {
  const [component, ...remainingPath] = path;
  if (frame === undefined || component === undefined) return 'never';
  if (remainingPath.length > 0) {
    if (component !== null) return disclosability(remainingPath, frame.children.get(String(component)));
    return combineElements([...frame.children.values()].map((child) => disclosability(remainingPath, child)));
  }
  if (component === null) return frame.hidden.size > 0 ? 'allowed' : 'never';
  return frame.hidden.has(component) ? 'always' : 'never';
}

/** A frame may cover some elements of an array only; the others are not disclosable selectively. */
function combineElements(elements: readonly Disclosability[]): Disclosability {
  return elements.some((element) => element !== 'never') ? 'allowed' : 'never';
}
