import { isJsonObject } from '../shared/json.ts';

/** A claims path pointer (OpenID4VP 1.0 section 7): key, wildcard (`null`) or position. */
export type ClaimsPath = readonly (string | number | null)[];

/** Recognizes the placeholder of an undisclosed array element. */
export type IsUndisclosed = (value: unknown) => boolean;

/** The rule that ended an evaluation without a claim. */
export type PathFault =
  | 'empty_path'
  | 'bad_component'
  | 'not_an_object'
  | 'not_an_array'
  | 'empty_selection'
  | 'bad_path'
  | 'no_namespace'
  | 'no_element';

/**
 * Evaluates a pointer on a JSON document (OpenID4VP 1.0 section 7.1). Array positions are those of the issued array: `null` skips
 * undisclosed elements, and the position of one selects nothing. The result is never an empty list.
 */
export function selectClaims(root: unknown, path: readonly unknown[], isUndisclosed: IsUndisclosed): readonly unknown[] | PathFault {
  if (path.length === 0) return 'empty_path';
  let selected: readonly unknown[] = [root];
  for (const component of path) {
    const nextSelection = applyComponent(selected, component, isUndisclosed);
    if (typeof nextSelection === 'string') return nextSelection;
    selected = nextSelection;
  }
  return selected.length === 0 ? 'empty_selection' : selected;
}

function applyComponent(selected: readonly unknown[], component: unknown, isUndisclosed: IsUndisclosed): readonly unknown[] | PathFault {
  if (typeof component === 'string') return stepIntoMember(selected, component);
  if (component === null) return stepIntoArray(selected, component, isUndisclosed);
  // OpenID4VP 1.0 section 7.1: anything but a string, null or a non-negative integer aborts.
  if (typeof component !== 'number' || !Number.isSafeInteger(component) || component < 0) return 'bad_component';
  return stepIntoArray(selected, component, isUndisclosed);
}

function stepIntoMember(selected: readonly unknown[], key: string): readonly unknown[] | PathFault {
  const nextSelection: unknown[] = [];
  for (const element of selected) {
    // OpenID4VP 1.0 section 7.1: an element that is no object aborts the whole pointer.
    if (!isJsonObject(element)) return 'not_an_object';
    if (Object.hasOwn(element, key)) nextSelection.push(element[key]);
  }
  return nextSelection;
}

/** @param position null for all elements. */
function stepIntoArray(
  selected: readonly unknown[],
  position: number | null,
  isUndisclosed: IsUndisclosed,
): readonly unknown[] | PathFault {
  const nextSelection: unknown[] = [];
  for (const element of selected) {
    // OpenID4VP 1.0 section 7.1: an element that is no array aborts the whole pointer.
    if (!Array.isArray(element)) return 'not_an_array';
    for (const member of position === null ? element : element.slice(position, position + 1)) {
      if (!isUndisclosed(member)) nextSelection.push(member);
    }
  }
  return nextSelection;
}

/**
 * Evaluates a pointer on the namespaces of an mdoc (OpenID4VP 1.0 section 7.2): exactly a namespace and an element, without access to the
 * element's content.
 */
export function selectElement(namespaces: unknown, path: readonly unknown[]): readonly unknown[] | PathFault {
  const [namespace, element] = path;
  if (path.length !== 2 || typeof namespace !== 'string' || typeof element !== 'string') return 'bad_path';
  if (!isJsonObject(namespaces) || !Object.hasOwn(namespaces, namespace)) return 'no_namespace';
  const elements = namespaces[namespace];
  if (!isJsonObject(elements) || !Object.hasOwn(elements, element)) return 'no_element';
  return [elements[element]];
}
