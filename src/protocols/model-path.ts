const collection = 'models/';

/** Returns the path of a model of generateContent upstreams. Its name may begin with its collection. */
export function modelPath(model: string): string {
  const path = model.split('/').map(encodeURIComponent).join('/');
  return isInCollection(model) ? `/${path}` : `/models/${path}`;
}

/** Returns a model's name with its collection, as bodies contain it. */
export function resourceName(model: string): string {
  return isInCollection(model) ? model : collection + model;
}

/** Returns a model's name without the collection that SDKs put before it. */
export function bareName(name: string): string {
  return name.startsWith(collection) ? name.slice(collection.length) : name;
}

function isInCollection(model: string): boolean {
  return model.startsWith(collection) || model.startsWith('tunedModels/');
}
