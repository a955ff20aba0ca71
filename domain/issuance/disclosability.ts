import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';

/** Claims path pointer (SD-JWT VC section 5.6.1): member names, positions, or null for all elements of an array. */
type Path = readonly (string | number | null)[];

type Disclosability = 'always' | 'allowed' | 'never';

/**
 * Whether the claim itself, whatever contains it, can be withheld (SD-JWT VC section 5.6.3). A frame hides positions
 * of an array one by one, so of all elements it can only be said that some may be.
 * @param frame what is selectively disclosable; absent when nothing is.
 */
export function disclosability(path: Path, frame: Frame | undefined): Disclosability {
  const [component, ...rest] = path;
  if (frame === undefined || component === undefined) return 'never';
  if (rest.length > 0) {
    if (component !== null) return disclosability(rest, frame.children.get(String(component)));
    return ofSome([...frame.children.values()].map((child) => disclosability(rest, child)));
  }
  if (component === null) return frame.hidden.size > 0 ? 'allowed' : 'never';
  return frame.hidden.has(component) ? 'always' : 'never';
}

/** Of all elements of an array where the frame speaks of some: the others are as they are. */
function ofSome(elements: readonly Disclosability[]): Disclosability {
  return elements.some((one) => one !== 'never') ? 'allowed' : 'never';
}
