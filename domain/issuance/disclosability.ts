import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';
import type { ClaimPath } from './credential-config.ts';

/**
 * Whether the claim itself, whatever contains it, can be withheld (SD-JWT VC section 5.6.3). A frame hides positions
 * of an array one by one, so of all elements it can only be said that some may be.
 */
export function disclosability(path: ClaimPath, frame: Frame | undefined): 'always' | 'allowed' | 'never' {
  let level = frame;
  for (const component of path.slice(0, -1)) {
    if (level === undefined) return 'never';
    if (component === null) return [...level.children.values()].some(hidesSomething) ? 'allowed' : 'never';
    level = level.children.get(String(component));
  }
  const last = path.at(-1);
  if (level === undefined || last === undefined) return 'never';
  if (last === null) return level.hidden.size > 0 ? 'allowed' : 'never';
  return level.hidden.has(last) ? 'always' : 'never';
}

function hidesSomething({ hidden, children }: Frame): boolean {
  return hidden.size > 0 || [...children.values()].some(hidesSomething);
}
