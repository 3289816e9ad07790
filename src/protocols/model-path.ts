const collection = 'models/';

/** Path of a model of generateContent upstreams, whose name may begin with the collection that it is in. */
export function modelPath(model: string): string {
  const path = model.split('/').map(encodeURIComponent).join('/');
  return isInCollection(model) ? `/${path}` : `/models/${path}`;
}

/** The name of a model with the collection that it is in, as bodies have it. */
export function resourceName(model: string): string {
  return isInCollection(model) ? model : collection + model;
}

/** A model's name without the collection that SDKs put before it. */
export function bareName(name: string): string {
  return name.startsWith(collection) ? name.slice(collection.length) : name;
}

function isInCollection(model: string): boolean {
  return model.startsWith(collection) || model.startsWith('tunedModels/');
}
